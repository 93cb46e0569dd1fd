"""The example of RFC 8291 (section 5 and appendix A), byte for byte."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from app.delivery.channels.push_encryption import encrypt
from app.delivery.channels.push_subscription import PushSubscription
from app.foundation.base64url import decode_base64url, encode_base64url
from tests.support.push_service import Browser

CONTENT = b"When I grow up, I want to be a watermelon"
BROWSER_KEY = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
BROWSER_POINT = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
OUR_KEY = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A"
    "_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def key(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(decode_base64url(text)), ec.SECP256R1())


def test_example_of_the_rfc() -> None:
    theirs = PushSubscription("https://push.example/", decode_base64url(BROWSER_POINT), decode_base64url(AUTH))
    body = encrypt(CONTENT, theirs, key=key(OUR_KEY), salt=decode_base64url(SALT))
    assert encode_base64url(body) == BODY


def test_browser_of_the_tests_decrypts_the_example() -> None:
    """So the stand-in does not share the mistakes of this service."""
    browser = Browser("https://push.example/")
    browser.key, browser.auth = key(BROWSER_KEY), decode_base64url(AUTH)
    with pytest.raises(json.JSONDecodeError) as text:
        browser.read(decode_base64url(BODY))
    assert text.value.doc.encode() == CONTENT
