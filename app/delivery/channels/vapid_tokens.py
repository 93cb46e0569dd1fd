"""Tells a push service who sends (VAPID, RFC 8292), by a signed token for its origin.

The registry imports this module in every copy, so only the methods load the library that signs: it takes 3 MB.
"""

import json
from functools import lru_cache

from app.foundation.base64url import encode_base64url
from app.settings.vapid_keys import VapidKeys

VALID_S = 12 * 3600
"""Push services refuse tokens for more than 24 hours."""
RENEWED_EVERY_S = 3600
"""Push services keep checked tokens, and some refuse senders who sign a new one for each message."""
MOST_ORIGINS = 64
_HEADER = {"typ": "JWT", "alg": "ES256"}


class VapidTokens:
    def __init__(self, keys: VapidKeys) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._public = encode_base64url(keys.public)
        self._subject = keys.subject
        self._key = ec.derive_private_key(int.from_bytes(keys.private), ec.SECP256R1())
        self._token = lru_cache(MOST_ORIGINS)(self._sign)

    def authorization(self, origin: str, now_s: float) -> str:
        """The Authorization header for a push service."""
        begins_s = int(now_s) // RENEWED_EVERY_S * RENEWED_EVERY_S
        return f"vapid t={self._token(origin, begins_s + RENEWED_EVERY_S + VALID_S)}, k={self._public}"

    def _sign(self, origin: str, expires_s: int) -> str:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        claims = {"aud": origin, "exp": expires_s, "sub": self._subject}
        signed = f"{_encoded(_HEADER)}.{_encoded(claims)}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(SHA256())))
        return f"{signed}.{encode_base64url(r.to_bytes(32) + s.to_bytes(32))}"


def _encoded(part: dict[str, str] | dict[str, str | int]) -> str:
    return encode_base64url(json.dumps(part, separators=(",", ":")).encode())
