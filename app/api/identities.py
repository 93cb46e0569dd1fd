"""Whom a token names, and why a token is refused."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from app.api.errors import Unauthenticated
from app.foundation.errors import Unavailable


class TokenMissing(Unauthenticated):
    """The call needs a bearer token."""

    code = "token_missing"


class TokenInvalid(Unauthenticated):
    """The token is forged, damaged, or was issued for another service."""

    code = "token_invalid"
    challenge: ClassVar[str] = 'Bearer error="invalid_token"'


class TokenExpired(Unauthenticated):
    """The token has expired; sign in again."""

    code = "token_expired"
    challenge: ClassVar[str] = 'Bearer error="invalid_token", error_description="expired"'


class TokenRevoked(Unauthenticated):
    """The token was revoked, or its account was disabled; sign in again."""

    code = "token_revoked"
    challenge: ClassVar[str] = 'Bearer error="invalid_token", error_description="revoked"'


class AnonymousRefused(Unauthenticated):
    """The token is of an anonymous sign-in."""

    code = "anonymous_refused"
    challenge: ClassVar[str] = 'Bearer error="invalid_token"'


class VerifierUnavailable(Unavailable):
    """The token cannot be checked just now."""

    code = "verifier_unavailable"


@dataclass(frozen=True)
class UserId:
    value: int


@dataclass(frozen=True)
class FirebaseUid:
    value: str


Identity = UserId | FirebaseUid


class TokenVerifier(Protocol):
    def verify(self, token: str) -> Identity:
        """Raises one of the errors above."""
        ...
