"""Encrypts the content of a Web Push for one browser: RFC 8291, with the content encoding aes128gcm of RFC 8188. The
push service that carries it cannot read it. No I/O.

The registry imports this module in every copy, so only the functions load the library: it takes 3 MB.
"""

import os
from typing import TYPE_CHECKING

from app.delivery.channels.push_subscription import PushSubscription
from app.delivery.messages.content import LARGEST_WEB_PUSH_BYTES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

RECORD_BYTES = 4096
SALT_BYTES = 16
_END_OF_LAST_RECORD = b"\x02"


def encrypt(
    content: bytes,
    subscription: PushSubscription,
    *,
    key: "EllipticCurvePrivateKey | None" = None,
    salt: bytes | None = None,
) -> bytes:
    """A message has a key and a salt of its own, which only the example of the RFC gives."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    assert len(content) <= LARGEST_WEB_PUSH_BYTES, "the channel refuses longer content"
    key, salt = key or ec.generate_private_key(ec.SECP256R1()), salt or os.urandom(SALT_BYTES)
    ours = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), subscription.public_key)
    shared = key.exchange(ec.ECDH(), theirs)
    about = b"WebPush: info\0" + subscription.public_key + ours
    secret = derive(subscription.auth, shared, about, 32)
    cipher = AESGCM(derive(salt, secret, b"Content-Encoding: aes128gcm\0", 16))
    nonce = derive(salt, secret, b"Content-Encoding: nonce\0", 12)
    header = salt + RECORD_BYTES.to_bytes(4) + bytes([len(ours)]) + ours
    return header + cipher.encrypt(nonce, content + _END_OF_LAST_RECORD, None)


def derive(salt: bytes, secret: bytes, about: bytes, length: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), length, salt, about).derive(secret)
