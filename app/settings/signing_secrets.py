"""Secrets that sign webhooks, in the form of Standard Webhooks: `whsec_` and the base64 of 24 to 64 random bytes."""

import base64
import binascii
import secrets

PREFIX = "whsec_"
FEWEST_BYTES, MOST_BYTES = 24, 64


class InvalidSecret(ValueError):
    """The message never repeats the secret."""

    def __init__(self) -> None:
        super().__init__(f"must be {PREFIX} and the base64 of {FEWEST_BYTES} to {MOST_BYTES} bytes")


def create() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def decode(secret: str) -> bytes:
    """The key that signatures are made with."""
    if not secret.startswith(PREFIX):
        raise InvalidSecret
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSecret from None
    if not FEWEST_BYTES <= len(key) <= MOST_BYTES:
        raise InvalidSecret
    return key
