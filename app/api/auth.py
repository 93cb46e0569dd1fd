"""Authentication: turns a bearer token into an active user, or refuses the call."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from app.api.access import ADMIN, KindConsumers, Open, Who
from app.api.errors import Unauthenticated
from app.api.identities import Identity, TokenInvalid, TokenMissing, TokenVerifier, UserId
from app.db.database import Database
from app.foundation.errors import Forbidden
from app.roster import service as roster
from app.roster.contract import Consumer
from app.users import service as users
from app.users.models import Caller

LONGEST_TOKEN = 8_000


class UserUnknown(Unauthenticated):
    """The token is valid, but no user belongs to it."""

    code = "user_unknown"
    challenge: ClassVar[str] = 'Bearer error="invalid_token"'


class RoleForbidden(Forbidden):
    """This call is not for the role of the caller."""

    code = "role_forbidden"


class ConsumerForbidden(Forbidden):
    """The token of this consumer is for another kind, or for something else than this call does."""

    code = "consumer_forbidden"


FindCaller = Callable[[Identity], Caller | None]


def find_in(db: Database) -> FindCaller:
    def find(identity: Identity) -> Caller | None:
        with db.reading() as conn:
            if isinstance(identity, UserId):
                return users.find_caller(conn, identity.value)
            return users.find_caller_by_firebase_uid(conn, identity.value)

    return find


FindConsumer = Callable[[str], Consumer | None]


def find_consumer_in(db: Database) -> FindConsumer:
    def find(token: str) -> Consumer | None:
        with db.autocommit() as conn:
            return roster.find_consumer(conn, token)

    return find


class Doorkeeper:
    def __init__(self, verifier: TokenVerifier, find_caller: FindCaller, find_consumer: FindConsumer) -> None:
        self._verifier = verifier
        self._find_caller = find_caller
        self._find_consumer = find_consumer

    def admit(self, who: Who, authorization: str | None, in_path: Mapping[str, str]) -> Caller | None:
        """`in_path` are the parameters of the path. Returns None for a caller who is no user."""
        if isinstance(who, Open):
            return None
        token = bearer_token(authorization)
        if isinstance(who, KindConsumers):
            if token.startswith(roster.TOKEN_PREFIX):
                self._admit_consumer(who, token, in_path["kind"])
                return None
            who = ADMIN
        caller = self._find(self.identify(token))
        if caller.role not in who:
            raise RoleForbidden("This call is not for your role.")
        return caller

    def identify(self, token: str) -> Identity:
        """Raises the errors of a `TokenVerifier`."""
        return self._verifier.verify(token)

    def _admit_consumer(self, who: KindConsumers, token: str, kind: str) -> None:
        consumer = self._find_consumer(token)
        if consumer is None:
            raise TokenInvalid("The token is not valid.")
        if (consumer.kind, consumer.scope) != (kind, who.scope):
            raise ConsumerForbidden("This call is not for your token.")

    def _find(self, identity: Identity) -> Caller:
        # Read for every call, so that deactivating a user takes effect at once, not when the token expires.
        caller = self._find_caller(identity)
        if caller is None:
            raise UserUnknown("No user belongs to this token.")
        return caller


def bearer_token(authorization: str | None) -> str:
    if not authorization:
        raise TokenMissing("The call needs an Authorization header with a bearer token.")
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise TokenMissing("The Authorization header must be 'Bearer' and a token.")
    token = token.strip()
    if len(token) > LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenInvalid("The token is not valid.")
    return token
