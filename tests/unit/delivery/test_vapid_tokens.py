"""The signed token that tells a push service who sends."""

import re

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from app.delivery.channels.vapid_tokens import VapidTokens
from app.foundation.base64url import decode_base64url
from app.settings.vapid_keys import VapidKeys
from tests.support.push_service import new_keys

KEYS = new_keys()
ORIGIN = "https://push.example"
BEGIN_S = 1_800_000_000.0


def claims(header: str, keys: VapidKeys = KEYS) -> dict[str, object]:
    found = re.fullmatch(r"vapid t=(\S+), k=(\S+)", header)
    assert found and decode_base64url(found[2]) == KEYS.public
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), keys.public)
    return jwt.decode(found[1], key, ["ES256"], audience=ORIGIN, options={"verify_exp": False})


def test_token_names_the_push_service_the_sender_and_its_end() -> None:
    found = claims(VapidTokens(KEYS).authorization(ORIGIN, BEGIN_S + 0.5))
    assert found == {"aud": ORIGIN, "exp": BEGIN_S + 13 * 3600, "sub": "mailto:nobet@ornek.org"}


def test_token_is_signed_with_the_private_key() -> None:
    header = VapidTokens(KEYS).authorization(ORIGIN, BEGIN_S)
    with pytest.raises(jwt.InvalidSignatureError):
        claims(header, new_keys())


def test_token_is_renewed_every_hour_and_for_each_push_service() -> None:
    tokens = VapidTokens(KEYS)
    asked = [(ORIGIN, 0.0), (ORIGIN, 3599.0), (ORIGIN, 3600.0), ("https://other.example", 0.0)]
    headers = [tokens.authorization(origin, BEGIN_S + later_s) for origin, later_s in asked]
    assert headers[0] == headers[1]
    assert len(set(headers)) == 3


def test_token_never_holds_for_longer_than_a_day() -> None:
    for second in range(0, 7200, 599):
        end = claims(VapidTokens(KEYS).authorization(ORIGIN, BEGIN_S + second))["exp"]
        assert 12 * 3600 <= int(str(end)) - (BEGIN_S + second) <= 24 * 3600
