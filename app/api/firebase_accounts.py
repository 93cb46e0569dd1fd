"""Whether a Firebase account still holds what its tokens say. Google is asked at most once a minute for each account.

While Google does not answer, the last answer counts for as long as a token lives. So an outage of Google keeps nobody
out who was just let in, and lets nobody in about whom nothing is known.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from app.api.identities import VerifierUnavailable

log = structlog.get_logger(__name__)

KEPT_S = 60.0
TOKEN_LIFE_S = 3600.0
PAUSE_S = 5.0
"""After a failure nobody asks for this long, so that not every request waits for the timeout."""
MOST_KEPT = 10_000


@dataclass(frozen=True)
class FirebaseAccount:
    is_active: bool
    """False if it was disabled or deleted."""
    tokens_valid_from_s: float = 0.0
    """Tokens that were issued before this time are revoked."""

    def accepts(self, issued_at_s: float) -> bool:
        return self.is_active and issued_at_s >= self.tokens_valid_from_s


class AccountUnknown(Exception):
    """Google did not answer."""


class FirebaseAccounts:
    """`ask` raises `AccountUnknown`."""

    def __init__(self, ask: Callable[[str], FirebaseAccount], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._kept: OrderedDict[str, tuple[float, FirebaseAccount]] = OrderedDict()
        self._lock = threading.Lock()
        self._ask_again_at = float("-inf")

    def find(self, uid: str) -> FirebaseAccount:
        now = self._monotonic()
        asked_at, known = self._kept.get(uid, (float("-inf"), None))
        if known is not None and now - asked_at < KEPT_S:
            return known
        if now >= self._ask_again_at:
            try:
                return self._keep(uid, now, self._ask(uid))
            except AccountUnknown as error:
                log.warning("firebase_account_unknown", kind=type(error.__cause__).__name__)
                self._ask_again_at = self._monotonic() + PAUSE_S
        if known is None or now - asked_at > TOKEN_LIFE_S:
            raise VerifierUnavailable("Google does not say whether the token was revoked.")
        return known

    def _keep(self, uid: str, at: float, account: FirebaseAccount) -> FirebaseAccount:
        with self._lock:
            self._kept[uid] = (at, account)
            self._kept.move_to_end(uid)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return account
