"""How the parts of the service are doing, for people. It reads what the metrics read, and compares it with the same
targets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection

from app.db.database import Database
from app.delivery.service import (
    count_live_notifications,
    count_open_dead_letters,
    longest_wait_s,
    measure_service_levels,
)
from app.foundation.errors import Unavailable
from app.jobs import service as jobs
from app.matching.service import Matching
from app.ops.breaker_gauges import is_receiver
from app.ops.delivery_gauges import MOST
from app.ops.health import Health, Readiness, ReadinessReport
from app.realtime.service import oldest_draft_s
from app.redis_store.breakers import Breakers, BreakerState
from app.roster import service as roster
from app.users.contract import StaffScope

DELIVERED_WITHIN_S = 5.0
SENT_SHARE = 0.99
"""The targets of `ServiceLevelGauges`."""
MESSAGE_WAITS_S = 30.0
"""As long as an attempt at a provider may take. A message that is due is claimed within milliseconds."""
JOB_WAITS_S = 60.0
EVENT_WAITS_S = 30.0
"""While nobody reads, events get their positions every 10 s."""
LIST_AGE_S = 36 * 3600.0
"""Lists come every night."""


class PartStatus(StrEnum):
    OK = "ok"
    LATE = "late"
    """It works, and more slowly than promised."""
    DOWN = "down"


@dataclass(frozen=True)
class Part:
    name: str
    status: PartStatus
    detail: str


@dataclass(frozen=True)
class PartsReport:
    readiness: ReadinessReport
    parts: Sequence[Part]
    breakers: Mapping[str, BreakerState]
    """Of providers. Empty while Redis does not answer: then every call is allowed."""
    backlog: int
    """Notifications that are not ended."""
    open_dead_letters: int
    """Those that the caller sees."""


class Parts:
    def __init__(
        self, db: Database, matching: Matching, breakers: Breakers, readiness: Readiness, late_after_s: float
    ) -> None:
        self._db = db
        self._matching = matching
        self._breakers = breakers
        self._readiness = readiness
        self._late_after_s = late_after_s

    def look(self, scope: StaffScope) -> PartsReport:
        readiness = self._readiness.look()
        with self._db.reading() as conn:
            return PartsReport(
                readiness=readiness,
                parts=[
                    _answers("database", readiness.database),
                    _answers("redis", readiness.redis),
                    _part("matcher", self._matcher),
                    _part("delivery", lambda: _delivery(conn)),
                    _part("jobs", lambda: _jobs(conn)),
                    _part("events", lambda: _events(conn)),
                    _part("lists", lambda: _lists(conn)),
                ],
                breakers=self._providers(),
                backlog=sum(count_live_notifications(conn).values()),
                open_dead_letters=count_open_dead_letters(conn, MOST, scope),
            )

    def _matcher(self) -> tuple[bool, str]:
        found = self._matching.overdue()
        return (
            found.longest_s > self._late_after_s,
            f"tasks due: {found.tasks}, the longest for {found.longest_s:.0f} s",
        )

    def _providers(self) -> dict[str, BreakerState]:
        try:
            states = self._breakers.states()
        except Unavailable:
            return {}
        return {name: state for name, state in sorted(states.items()) if not is_receiver(name)}


def _answers(name: str, health: Health) -> Part:
    if health is Health.OK:
        return Part(name, PartStatus.OK, "answers")
    return Part(name, PartStatus.DOWN, "does not answer")


def _part(name: str, look: Callable[[], tuple[bool, str]]) -> Part:
    try:
        is_late, detail = look()
    except Unavailable:
        return Part(name, PartStatus.DOWN, "cannot be read")
    return Part(name, PartStatus.LATE if is_late else PartStatus.OK, detail)


def _delivery(conn: Connection) -> tuple[bool, str]:
    found = measure_service_levels(conn)
    waits_s = longest_wait_s(conn)
    is_late = found.p95_s > DELIVERED_WITHIN_S or found.success_rate < SENT_SHARE or waits_s > MESSAGE_WAITS_S
    sent = f"sent in the last hour: {found.success_rate:.1%}, 95 % of them within {found.p95_s:.1f} s"
    return is_late, f"{sent}; the oldest that is due waits for {waits_s:.0f} s"


def _jobs(conn: Connection) -> tuple[bool, str]:
    load = jobs.read_load(conn)
    detail = f"running: {load.running}, waiting: {load.queued}, the longest for {load.oldest_queued_s:.0f} s"
    return load.oldest_queued_s > JOB_WAITS_S, detail


def _events(conn: Connection) -> tuple[bool, str]:
    """Late if no process gives positions, for example because one holds the lock and stands still."""
    oldest_s = oldest_draft_s(conn)
    return oldest_s > EVENT_WAITS_S, f"the oldest that streams have not told waits for {oldest_s:.0f} s"


def _lists(conn: Connection) -> tuple[bool, str]:
    kinds = roster.read_load(conn)
    oldest_s = max((kind.last_run_age_s for kind in kinds), default=0.0)
    left = sum(kind.people_left for kind in kinds)
    detail = (
        f"lists: {len(kinds)}, the oldest from {oldest_s / 3600:.0f} h ago; people who do not follow theirs yet: {left}"
    )
    return oldest_s > LIST_AGE_S, detail
