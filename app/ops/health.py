"""Readiness: checks each part that this copy depends on."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from app.db.database import Database
from app.db.revisions import current_revision, head_revision
from app.foundation.errors import AppError
from app.matching.service import Matching
from app.redis_store.contract import Clockwork


class Health(StrEnum):
    OK = "ok"
    FAILED = "failed"


class Readiness:
    """Every request needs the database and its schema. Presses and answers work without Redis, so a copy without it is
    `degraded` and still gets requests from the load balancer. The same holds while the matchers are late, because
    overdue deadlines are no reason to refuse a new press.
    """

    def __init__(self, db: Database, clockwork: Clockwork, matching: Matching, late_after_s: float) -> None:
        self._db = db
        self._clockwork = clockwork
        self._matching = matching
        self._late_after_s = late_after_s
        self._head: str | None = None

    def look(self) -> "ReadinessReport":
        database = _health(self._database_answers)
        return ReadinessReport(
            database=database,
            # Skipped if the database did not answer, because each check would wait for a timeout.
            migrations=_health(self._schema_is_newest) if database is Health.OK else database,
            redis=_health(self._redis_answers),
            matcher=_health(self._nothing_is_late) if database is Health.OK else database,
        )

    def _database_answers(self) -> bool:
        self._db.now()
        return True

    def _schema_is_newest(self) -> bool:
        # The newest revision cannot change while this process runs.
        self._head = self._head or head_revision()
        with self._db.reading() as conn:
            return current_revision(conn) == self._head

    def _nothing_is_late(self) -> bool:
        return not self._matching.is_late(self._late_after_s)

    def _redis_answers(self) -> bool:
        self._clockwork.ping()
        return True


@dataclass(frozen=True)
class ReadinessReport:
    database: Health
    migrations: Health
    redis: Health
    matcher: Health

    @property
    def ready(self) -> bool:
        return self.database is Health.OK and self.migrations is Health.OK

    @property
    def degraded(self) -> bool:
        return self.ready and Health.FAILED in (self.redis, self.matcher)


def _health(check: Callable[[], bool]) -> Health:
    try:
        return Health.OK if check() else Health.FAILED
    except AppError:
        return Health.FAILED
