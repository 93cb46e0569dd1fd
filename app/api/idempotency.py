"""The `Idempotency-Key` header: a caller sends the same key when it repeats a request."""

from app.api.errors import FieldCode, FieldError, InvalidInput
from app.api.routing import Call, Header

NAME = "Idempotency-Key"
MAX_LENGTH = 128


def key_header(description: str) -> Header:
    return Header(NAME, description, MAX_LENGTH)


def read_key(call: Call) -> str | None:
    key = call.headers.get(NAME)
    if key is None:
        return None
    if not (1 <= len(key) <= MAX_LENGTH and key.isascii() and key.isprintable()):
        message = f"must be 1 to {MAX_LENGTH} printable ASCII characters"
        raise InvalidInput([FieldError(NAME, message, FieldCode.WRONG_FORM)])
    return key
