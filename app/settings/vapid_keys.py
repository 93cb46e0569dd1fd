"""The keys that tell push services who sends a Web Push (VAPID, RFC 8292). The messages never repeat a key."""

import re
from dataclasses import dataclass, field

from app.foundation.base64url import decode_base64url, encode_base64url
from app.foundation.p256 import is_point

PRIVATE_BYTES = 32
_SUBJECT = re.compile(r"mailto:[^\s@]+@[^\s@]+|https://[^\s/]+\S*")


@dataclass(frozen=True)
class VapidKeys:
    public: bytes
    """A point, as browsers take it for `applicationServerKey`."""
    private: bytes = field(repr=False)
    subject: str
    """Where the operator of a push service reaches us."""


def create() -> tuple[str, str]:
    """A new public key and its private key, as the settings hold them."""
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_numbers().private_value.to_bytes(PRIVATE_BYTES)
    return encode_base64url(public_key_of(private)), encode_base64url(private)


def read_public_key(text: str) -> bytes:
    key = _decoded(text)
    if not is_point(key):
        raise ValueError("must be a public key that `python -m app vapid` has printed")
    return key


def read_private_key(text: str) -> bytes:
    key = _decoded(text)
    if len(key) != PRIVATE_BYTES:
        raise ValueError("must be a private key that `python -m app vapid` has printed")
    return key


def check_subject(text: str) -> None:
    if not _SUBJECT.fullmatch(text):
        raise ValueError("must be mailto: with an e-mail address, or a URL that begins with https://")


def public_key_of(private: bytes) -> bytes:
    """Raises `ValueError` if there is no such private key."""
    # Loaded only where keys are set, because every process reads the settings, and few send pushes.
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = ec.derive_private_key(int.from_bytes(private), ec.SECP256R1())
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _decoded(text: str) -> bytes:
    try:
        return decode_base64url(text)
    except ValueError:
        return b""
