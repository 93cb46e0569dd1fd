"""Base64 in the alphabet of URLs, without padding, as web tokens and Web Push write it."""

import base64
import re

_TEXT = re.compile(r"[A-Za-z0-9_-]*={0,2}")


def encode_base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Raises `ValueError` if the text is not of this form. Padding may be there."""
    if not _TEXT.fullmatch(text):
        raise ValueError("is not base64url")
    bare = text.rstrip("=")
    return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_", validate=True)
