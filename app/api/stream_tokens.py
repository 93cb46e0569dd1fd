"""Whether the tokens of open streams still admit their callers. Calls are checked when they come; a stream stays open
for hours."""

from collections.abc import Callable, Sequence

from app.api.errors import Unauthenticated
from app.api.identities import Identity, UserId, VerifierUnavailable
from app.db.database import Database
from app.realtime.contract import CheckTokens, EndReason
from app.users import service as users
from app.users.models import Caller

Identify = Callable[[str], Identity]


def check_tokens_in(db: Database, identify: Identify) -> CheckTokens:
    def check(tokens: Sequence[str]) -> list[Caller | EndReason | None]:
        named = [_identify(identify, token) for token in tokens]
        known = [one for one in named if one is not None and not isinstance(one, EndReason)]
        ids = {one.value for one in known if isinstance(one, UserId)}
        uids = {one.value for one in known if not isinstance(one, UserId)}
        with db.reading() as conn:
            callers = users.active_callers(conn, ids, uids)
        return [
            one if one is None or isinstance(one, EndReason) else callers.get(one.value, EndReason.DEACTIVATED)
            for one in named
        ]

    return check


def _identify(identify: Identify, token: str) -> Identity | EndReason | None:
    """None if Google does not say just now whether the token was revoked."""
    try:
        return identify(token)
    except Unauthenticated:
        return EndReason.TOKEN_EXPIRED
    except VerifierUnavailable:
        return None
