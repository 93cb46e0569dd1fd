"""Writes both files of the client."""

from app.api.openapi import describe
from app.api.views.catalogue import ROUTES
from typed_client.client_files import PLAIN, TYPED, plain_client, typed_client

if __name__ == "__main__":
    typed = typed_client(describe(ROUTES))
    TYPED.write_text(typed)
    PLAIN.write_text(plain_client(typed))
