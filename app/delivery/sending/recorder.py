"""Records the results of attempts, many in one transaction."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from app.db.database import Database
from app.delivery.messages.claims import Claimed
from app.delivery.messages.outcomes import Report, fits_one_statement, record
from app.delivery.messages.values import Follower
from app.delivery.sending.metrics import DeliveryMetrics
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.foundation.loop import DoublingPause

log = structlog.get_logger(__name__)

GROUP_S = 0.010
"""The longest time that a report waits for others. With 0, `put` records in the calling thread."""
GROUP_SIZE = 500
FIRST_PAUSE_S = 0.05
# Short, because after an outage of the database, channel workers wait for the recorder.
LONGEST_PAUSE_S = 0.5


@dataclass(frozen=True)
class _Batch:
    reports: list[Report]
    on_recorded: Callable[[list[Claimed]], None]


class Recorder:
    """A thread that gathers reports for up to `GROUP_S` and commits them together.

    During an outage of the database it keeps the reports. Without them, messages that were sent would be sent again.
    """

    def __init__(
        self, db: Database, metrics: DeliveryMetrics, followers: Sequence[Follower], group_s: float = GROUP_S
    ) -> None:
        self._db = db
        self._group_s = group_s
        self._metrics = metrics
        self._followers = followers
        self._inbox: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._unwritten = 0
        self._written = threading.Condition()
        self._give_up_at = float("inf")
        self._thread = threading.Thread(target=self._run, name="delivery-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, reports: list[Report], on_recorded: Callable[[list[Claimed]], None]) -> None:
        """`on_recorded` is called with their notifications once the reports are recorded or given up."""
        batch = _Batch(reports, on_recorded)
        with self._written:
            self._unwritten += 1
        if self._group_s:
            self._inbox.put(batch)
        else:
            self._write_all([batch])

    def wait_until_written(self, timeout_s: float) -> None:
        """Until all reports are recorded or given up, or the time is over."""
        with self._written:
            self._written.wait_for(lambda: self._unwritten == 0, timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Records the remaining reports. False if the recorder could not finish within the timeout."""
        self._give_up_at = time.monotonic() + timeout_s
        self._inbox.put(None)
        self._thread.join(timeout_s + 1)
        return not self._thread.is_alive()

    def write(self, reports: list[Report]) -> None:
        # An autocommitted statement needs a third of the round trips of a transaction.
        is_alone = all(fits_one_statement(report, self._followers) for report in reports)
        with self._db.autocommit() if is_alone else self._db.transaction() as conn:
            failpoint("delivery.recording")
            recorded = record(conn, reports, () if is_alone else self._followers)
        self._metrics.count_recorded(recorded)
        if len(recorded) < len(reports):
            log.warning("delivery_records_refused", count=len(reports) - len(recorded))
            self._metrics.count_refused(len(reports) - len(recorded))

    def _run(self) -> None:
        going_on = True
        while going_on:
            batches, going_on = self._gather()
            if batches:
                self._write_all(batches)

    def _write_all(self, batches: list[_Batch]) -> None:
        self._write_with_retries([report for batch in batches for report in batch.reports])
        for batch in batches:
            batch.on_recorded([report.claimed for report in batch.reports])
        with self._written:
            self._unwritten -= len(batches)
            self._written.notify_all()

    def _gather(self) -> tuple[list[_Batch], bool]:
        batches: list[_Batch] = []
        batch = self._inbox.get()
        until = time.monotonic() + self._group_s
        size = 0
        while batch is not None:
            batches.append(batch)
            size += len(batch.reports)
            if size >= GROUP_SIZE:
                return batches, True
            try:
                batch = self._inbox.get(timeout=max(until - time.monotonic(), 0))
            except queue.Empty:
                return batches, True
        return batches, False

    def _write_with_retries(self, group: list[Report]) -> None:
        pause = DoublingPause(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while True:
            try:
                return self.write(group)
            except Unavailable:
                log.warning("delivery_record_waits", count=len(group))
            except Exception as error:
                return self._write_one_by_one(group, error)
            pause_s = pause.next_s()
            if time.monotonic() + pause_s > self._give_up_at:
                log.error("delivery_record_given_up", count=len(group))
                return None
            time.sleep(pause_s)

    def _write_one_by_one(self, group: list[Report], error: Exception) -> None:
        """A report that cannot be recorded must not stop the others: their leases would run out, and their messages
        would be sent again."""
        if len(group) == 1:
            log.error("delivery_record_failed", notification_id=str(group[0].claimed.id), **describe_error(error))
            return
        log.error("delivery_record_failed", count=len(group), **describe_error(error))
        for report in group:
            self._write_with_retries([report])
