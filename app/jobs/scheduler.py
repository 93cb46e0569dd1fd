"""Asks for the jobs of the schedule when they are due. Any number of schedulers may run: each run is asked for once."""

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import structlog
from sqlalchemy import Connection, text

from app.db.database import Database
from app.foundation.loop import Bell, run_loop
from app.jobs.catalogue import Catalogue, CheckedJob
from app.jobs.due_times import last_due
from app.jobs.errors import ScriptBroken, ScriptUnknown, WrongParams
from app.jobs.failure_alarm import raise_alarm
from app.jobs.job_store import NewJob, has_live_job, has_queued_job, request_job
from app.jobs.models import JobOrigin
from app.settings.job_schedule import Missed, Overlap, ScheduleEntry

log = structlog.get_logger(__name__)

EVERY_S = 1.0
MISSED_AFTER = timedelta(minutes=2)
"""A run that is asked for later than this was missed: a restart takes less."""

# A new entry begins now, not with runs of the past.
_BEGIN = text("INSERT INTO job_schedules VALUES (:name, clock_timestamp()) ON CONFLICT DO NOTHING")
_STATE = "SELECT last_due_at, clock_timestamp() AS now FROM job_schedules WHERE name = :name"
_READ = text(_STATE)
_LOCK = text(f"{_STATE} FOR UPDATE SKIP LOCKED")
# The clock of PostgreSQL was ahead and was put right. No run is asked for twice: there is one job for each due time.
_BEGIN_AGAIN = text(
    "UPDATE job_schedules SET last_due_at = clock_timestamp()"
    " WHERE name = :name AND last_due_at > clock_timestamp() + :missed_after"
)
_NOTE = text("UPDATE job_schedules SET last_due_at = :due_at WHERE name = :name")


class Scheduler:
    def __init__(
        self,
        db: Database,
        catalogue: Catalogue,
        entries: Sequence[ScheduleEntry],
        zone: ZoneInfo,
        timeout_s: float,
        *,
        every_s: float = EVERY_S,
    ) -> None:
        self._db = db
        self._catalogue = catalogue
        self._entries = entries
        self._zone = zone
        self._timeout_s = timeout_s
        self._every_s = every_s
        self._begun = False
        self.bell = Bell()

    def run(self, stop: threading.Event) -> None:
        run_loop("scheduler", self._turn, stop, sleep=self.bell.wait)

    def _turn(self) -> float:
        self.run_once()
        return self._every_s

    def run_once(self) -> int:
        """Asks for what is due, and returns the number of jobs."""
        if not self._begun:
            with self._db.transaction() as conn:
                for entry in sorted(self._entries, key=lambda entry: entry.key):
                    conn.execute(_BEGIN, {"name": entry.key})
            self._begun = True
        return sum(self._ask_for(entry) for entry in self._entries)

    def _ask_for(self, entry: ScheduleEntry) -> bool:
        with self._db.reading() as conn:
            state = conn.execute(_READ, {"name": entry.key}).one_or_none()
        if state is not None and state.last_due_at - state.now > MISSED_AFTER:
            log.warning("schedule_was_ahead", schedule=entry.key, last_due_at=state.last_due_at.isoformat())
            with self._db.transaction() as conn:
                conn.execute(_BEGIN_AGAIN, {"name": entry.key, "missed_after": MISSED_AFTER})
            return False
        if self._due_time(entry, state) is None:
            return False
        # Before the transaction, because an operator's script is checked in a process of its own.
        checked = self._check(entry)
        with self._db.transaction() as conn:
            # None if another scheduler is at it.
            state = conn.execute(_LOCK, {"name": entry.key}).one_or_none()
            due_at = self._due_time(entry, state)
            if state is None or due_at is None:
                return False
            conn.execute(_NOTE, {"name": entry.key, "due_at": due_at})
            skipped = self._reason_to_skip(conn, entry, due_at, state.now)
            if skipped is not None:
                log.warning("scheduled_job_skipped", schedule=entry.key, due_at=due_at.isoformat(), reason=skipped)
                return False
            if checked is None:
                raise_alarm(conn, entry.job)
                return False
            return request_job(conn, self._new_job(entry, checked, due_at)) is not None

    def _due_time(self, entry: ScheduleEntry, state: Any) -> datetime | None:
        return state and last_due(entry.cron, self._zone, state.last_due_at, state.now)

    def _reason_to_skip(self, conn: Connection, entry: ScheduleEntry, due_at: datetime, now: datetime) -> str | None:
        if entry.missed is Missed.SKIP and now - due_at > MISSED_AFTER:
            return "missed"
        if entry.overlap is Overlap.SKIP and has_live_job(conn, exclusive_key(entry)):
            return "overlap"
        if has_queued_job(conn, exclusive_key(entry)):
            # One run may wait for the one before it, but not a row of them.
            return "another waits already"
        return None

    def _check(self, entry: ScheduleEntry) -> CheckedJob | None:
        """It was checked at the start, but an operator may have changed the script since."""
        try:
            return self._catalogue.check(entry.job, entry.params)
        except (ScriptUnknown, ScriptBroken, WrongParams) as error:
            log.error("scheduled_job_refused", schedule=entry.key, job=entry.job, code=error.code)
            return None

    def _new_job(self, entry: ScheduleEntry, checked: CheckedJob, due_at: datetime) -> NewJob:
        declared = checked.declaration
        return NewJob(
            name=entry.job,
            task_type=declared.task_type,
            max_retries=declared.max_retries,
            timeout_s=declared.timeout_s or self._timeout_s,
            origin=JobOrigin.SCHEDULE,
            params=checked.params,
            schedule_name=entry.key,
            scheduled_for=due_at,
            exclusive_key=exclusive_key(entry),
        )


def exclusive_key(entry: ScheduleEntry) -> str:
    return f"schedule:{entry.key}"


def problems_with_schedule(catalogue: Catalogue, entries: Sequence[ScheduleEntry]) -> list[str]:
    """What is wrong with the jobs that the schedule names, one line for each."""
    problems: list[str] = []
    for entry in entries:
        try:
            catalogue.check(entry.job, entry.params)
        except WrongParams as error:
            problems += [f"{entry.key}: params.{one.field}: {one.message}" for one in error.problems]
        except (ScriptUnknown, ScriptBroken) as error:
            problems.append(f"{entry.key}: {entry.job}: {error.message}")
    return problems
