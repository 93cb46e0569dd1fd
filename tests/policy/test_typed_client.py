"""The client for pages is what `scripts/client` writes now."""

import gzip
import re

from typed_client.client_files import PLAIN, TYPED, TYPES_ONLY, plain_client, strip_types, typed_client

from app.api.openapi import describe
from app.api.views.catalogue import ROUTES


def test_client_is_up_to_date() -> None:
    typed = typed_client(describe(ROUTES))
    assert TYPED.read_text() == typed, "run scripts/client"
    assert PLAIN.read_text() == plain_client(typed), "run scripts/client"


def test_nothing_but_types_is_left_out_of_the_plain_client() -> None:
    """The rest of the file without types holds comments only, which say what the types are."""
    rest = strip_types(TYPED.read_text()).partition(TYPES_ONLY)[2]
    assert re.sub(r"/\*\*.*?\*/", "", rest, flags=re.DOTALL).strip() == ""


def test_plain_client_is_small() -> None:
    assert len(gzip.compress(PLAIN.read_bytes())) < 6_000
