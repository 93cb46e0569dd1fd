"""Local tokens: forged ones are refused, each with the right error."""

import base64
import json
from typing import Any

import jwt
import pytest

from app.api.auth import bearer_token
from app.api.identities import TokenExpired, TokenInvalid, TokenMissing, UserId
from app.api.tokens import AUDIENCE, ISSUER, LIFETIME_S, LocalTokens
from tests.support.api import SECRET, bearer

NOW = 1_773_306_000
TOKENS = LocalTokens(SECRET, lambda: NOW)
GOOD: dict[str, Any] = {"iss": ISSUER, "aud": AUDIENCE, "sub": "7", "iat": NOW, "exp": NOW + 60}


def signed(key: str = SECRET, algorithm: str = "HS256", **changes: Any) -> str:
    claims = {name: value for name, value in (GOOD | changes).items() if value is not None}
    # Written by hand, because the library refuses to make some forged tokens.
    header = _part({"alg": algorithm, "typ": "JWT"})
    if algorithm == "none":
        return f"{header}.{_part(claims)}."
    signature = jwt.algorithms.HMACAlgorithm(getattr(jwt.algorithms.HMACAlgorithm, f"SHA{algorithm[2:]}")).sign(
        f"{header}.{_part(claims)}".encode(), key.encode()
    )
    return f"{header}.{_part(claims)}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def test_issued_token_is_accepted_for_a_day():
    assert TOKENS.verify(TOKENS.issue(7)) == UserId(7)
    assert LocalTokens(SECRET, lambda: NOW + LIFETIME_S - 1).verify(TOKENS.issue(7)) == UserId(7)
    with pytest.raises(TokenExpired):
        LocalTokens(SECRET, lambda: NOW + LIFETIME_S).verify(TOKENS.issue(7))


def test_helper_makes_valid_tokens():
    assert TOKENS.verify(signed()) == UserId(7)


FORGED = {
    "other key": signed(key="x" * 40),
    "no algorithm": signed(algorithm="none"),
    "other algorithm": signed(algorithm="HS512"),
    "other audience": signed(aud="another-api"),
    "no audience": signed(aud=None),
    "other issuer": signed(iss="somebody"),
    "no issuer": signed(iss=None),
    "no subject": signed(sub=None),
    "no end": signed(exp=None),
    "no beginning": signed(iat=None),
    "from the future": signed(iat=NOW + 3600),
    "end as text": signed(exp="tomorrow"),
    "end without end": signed(exp=float("inf")),
    "beginning as text": signed(iat="now"),
    "subject as number": signed(sub=7),
    "subject zero": signed(sub="0"),
    "subject beyond bigint": signed(sub="9223372036854775808"),
    "subject in other digits": signed(sub="٧"),
    "subject with a sign": signed(sub="-7"),
    "not yet": signed(nbf=NOW * 2),
    "two parts": "a.b",
    "nothing in it": "..",
    "words": "hello",
    "claims as a list": f"{_part({'alg': 'HS256'})}.{_part([1])}.AA",
    "header as a list": f"{_part([1])}.{_part(GOOD)}.AA",
    "signature cut off": signed()[:-4],
    "signature removed": signed().rpartition(".")[0] + ".",
}


@pytest.mark.parametrize("token", FORGED.values(), ids=FORGED.keys())
def test_forged_token_is_refused(token: str):
    with pytest.raises(TokenInvalid):
        TOKENS.verify(token)


def test_only_our_own_expired_token_is_reported_as_expired():
    with pytest.raises(TokenExpired):
        TOKENS.verify(signed(iat=NOW - 100, exp=NOW))
    with pytest.raises(TokenInvalid):
        TOKENS.verify(signed(key="x" * 40, iat=NOW - 100, exp=NOW - 1))


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic abc", "abc"])
def test_request_without_a_token_is_reported_as_missing(header: str | None):
    with pytest.raises(TokenMissing):
        bearer_token(header)


@pytest.mark.parametrize("header", ["Bearer a b", "Bearer ü", "Bearer a\x00b", "Bearer " + "a" * 8001])
def test_malformed_token_is_invalid(header: str):
    with pytest.raises(TokenInvalid):
        bearer_token(header)


def test_scheme_is_read_in_any_case():
    assert bearer_token("bearer  abc") == "abc"


@pytest.mark.parametrize(
    ("headers", "status", "code", "challenge"),
    [
        ({}, 401, "token_missing", "Bearer"),
        (bearer("forged"), 401, "token_invalid", 'Bearer error="invalid_token"'),
        (bearer("deactivated"), 403, "user_deactivated", None),
        (bearer("student"), 403, "role_forbidden", None),
    ],
)
def test_refused_caller_gets_the_reason(
    client: Any, headers: dict[str, str], status: int, code: str, challenge: str | None
):
    response = client.get("/users", headers=headers)
    assert (response.status_code, response.get_json(force=True)["code"]) == (status, code)
    assert response.headers.get("WWW-Authenticate") == challenge
