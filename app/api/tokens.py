"""Tokens this service issues and verifies itself, for `AUTH_MODE=local`."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import jwt

from app.api.identities import TokenExpired, TokenInvalid, UserId
from app.foundation.base64url import encode_base64url
from app.foundation.pages import BIGINT_MAX

ISSUER = "yaninda"
AUDIENCE = "yaninda-api"
ALGORITHM = "HS256"
LIFETIME_S = 24 * 3600
CLOCK_SKEW_S = 60
"""How far ahead the clock of the machine that issued a token may be. It does not make a token valid for longer."""


@dataclass(frozen=True)
class IssuedToken:
    token: str = field(repr=False)
    expires_at: datetime


class LocalTokens:
    def __init__(self, secret: str, now: Callable[[], float] = time.time) -> None:
        # As a key object, because the library would examine a plain secret again for every token.
        self._key = jwt.PyJWK({"kty": "oct", "k": encode_base64url(secret.encode()), "alg": ALGORITHM})
        self._now = now

    def issue(self, user_id: int) -> str:
        return self.issue_with_end(user_id).token

    def issue_with_end(self, user_id: int) -> IssuedToken:
        now = int(self._now())
        end = now + LIFETIME_S
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": str(user_id), "iat": now, "exp": end}
        return IssuedToken(jwt.encode(claims, self._key, algorithm=ALGORITHM), datetime.fromtimestamp(end, UTC))

    def verify(self, token: str) -> UserId:
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[ALGORITHM],
                issuer=ISSUER,
                audience=AUDIENCE,
                # The times are checked below, with this object's clock.
                options={"require": ["exp", "iat", "sub"], "verify_exp": False, "verify_iat": False},
            )
        except (jwt.InvalidTokenError, ValueError, TypeError):
            raise TokenInvalid("The token is not valid.") from None
        self._check_times(claims)
        return UserId(_user_id(claims["sub"]))

    def _check_times(self, claims: dict[str, Any]) -> None:
        issued, expires, now = claims["iat"], claims["exp"], self._now()
        if type(issued) is not int or type(expires) is not int or issued > now + CLOCK_SKEW_S:
            raise TokenInvalid("The token is not valid.")
        if expires <= now:
            raise TokenExpired("The token has expired; sign in again.")


def _user_id(subject: str) -> int:
    if not (subject.isascii() and subject.isdigit() and len(subject) <= 19 and 1 <= int(subject) <= BIGINT_MAX):
        raise TokenInvalid("The token is not valid.")
    return int(subject)
