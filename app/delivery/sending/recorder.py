"""Records the results of attempts: many in one transaction, or each in its own."""

import threading
import time
from collections.abc import Callable, Sequence

import structlog

from app.db.database import Database
from app.delivery.messages.outcomes import Recorded, Report, fits_one_statement, record, record_each
from app.delivery.messages.values import Follower
from app.delivery.sending.metrics import DeliveryMetrics
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.foundation.loop import DoublingPause

log = structlog.get_logger(__name__)

GROUP_S = 0.010
"""The longest time that a report waits for others. With 0 it waits for none, and each is recorded by itself."""
GROUP_SIZE = 500
EACH_SIZE = 16
"""The number of records by themselves that are on their way over one connection. The last waits for the commits of the
others, about 5 ms."""
EACH_THREADS = 4
"""Several connections commit together, so that the disk is not written once for each record."""
FIRST_PAUSE_S = 0.05
# Short, because after an outage of the database, channel workers wait for the recorder.
LONGEST_PAUSE_S = 0.5


OnRecorded = Callable[[list[Report]], None]
"""Called with reports once they are recorded or given up."""


class Recorder:
    """A thread that gathers reports for up to `GROUP_S` and commits them together; or some threads that record each by
    itself, and send the next ones before the first is answered.

    During an outage of the database it keeps the reports. Without them, messages that were sent would be sent again.
    """

    def __init__(
        self, db: Database, metrics: DeliveryMetrics, followers: Sequence[Follower], group_s: float = GROUP_S
    ) -> None:
        self._db = db
        self._group_s = group_s
        self._most = GROUP_SIZE if group_s else EACH_SIZE
        self._metrics = metrics
        self._followers = followers
        lock = threading.Lock()
        self._arrived = threading.Condition(lock)
        self._written = threading.Condition(lock)
        self._waiting: list[tuple[Report, OnRecorded]] = []
        self._unwritten = 0
        self._is_closed = False
        self._give_up_at = float("inf")
        self._threads = [
            threading.Thread(target=self._run, name="delivery-recorder", daemon=True)
            for _ in range(1 if group_s else EACH_THREADS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def put(self, reports: Sequence[Report], on_recorded: OnRecorded) -> None:
        group = [(report, on_recorded) for report in reports]
        with self._arrived:
            self._unwritten += len(group)
            self._waiting += group
            # A thread wakes for the first report and for a whole group. In between it would only wait on.
            if len(self._waiting) == len(group) or len(self._waiting) >= self._most:
                self._arrived.notify()

    def wait_until_written(self, timeout_s: float) -> None:
        """Until all reports are recorded or given up, or the time is over."""
        with self._written:
            self._written.wait_for(lambda: self._unwritten == 0, timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Records the remaining reports. False if the recorder could not finish within the timeout."""
        self._give_up_at = time.monotonic() + timeout_s
        with self._arrived:
            self._is_closed = True
            self._arrived.notify_all()
        until = time.monotonic() + timeout_s + 1
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads)

    def write(self, reports: list[Report]) -> None:
        # An autocommitted statement needs a third of the round trips of a transaction.
        is_alone = all(fits_one_statement(report, self._followers) for report in reports)
        with self._db.autocommit() if is_alone else self._db.transaction() as conn:
            failpoint("delivery.recording")
            recorded = record(conn, reports, () if is_alone else self._followers)
        self._count(recorded, len(reports))

    def _count(self, recorded: list[Recorded], number: int) -> None:
        self._metrics.count_recorded(recorded)
        if len(recorded) < number:
            log.warning("delivery_records_refused", count=number - len(recorded))
            self._metrics.count_refused(number - len(recorded))

    def _run(self) -> None:
        while group := self._gather():
            self._write_all(group)

    def _gather(self) -> list[tuple[Report, OnRecorded]]:
        """Returns an empty list once the recorder is closed and all is written."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._waiting or self._is_closed)
            # Even a wait of no time lets other threads take the reports. One that found none would end.
            if self._group_s:
                self._arrived.wait_for(lambda: len(self._waiting) >= self._most or self._is_closed, self._group_s)
            group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            if self._waiting:
                self._arrived.notify()
            return group

    def _write_all(self, group: Sequence[tuple[Report, OnRecorded]]) -> None:
        reports = [report for report, _ in group]
        self._write_with_retries(reports if self._group_s else self._write_each(reports))
        by_listener: dict[OnRecorded, list[Report]] = {}
        for report, on_recorded in group:
            by_listener.setdefault(on_recorded, []).append(report)
        for on_recorded, reports in by_listener.items():
            try:
                on_recorded(reports)
            except Exception as error:
                # It is the one recorder of all channels, and must not end.
                log.error("delivery_listener_failed", count=len(reports), **describe_error(error))
        with self._written:
            self._unwritten -= len(group)
            self._written.notify_all()

    def _write_each(self, reports: list[Report]) -> list[Report]:
        """Returns those that take more than one statement, and those that may not have been recorded. They go the usual
        way, which tells why."""
        alone: list[Report] = []
        left: list[Report] = []
        for report in reports:
            fits = len(report.tries) == 1 and fits_one_statement(report, self._followers)
            (alone if fits else left).append(report)
        if not alone:
            return left
        try:
            with self._db.autocommit() as conn:
                failpoint("delivery.recording")
                answers = record_each(conn, alone)
        except Exception:
            return reports
        known = [answer for answer in answers if answer is not None]
        self._count([recorded for answer in known for recorded in answer], len(known))
        return left + [report for report, answer in zip(alone, answers, strict=True) if answer is None]

    def _write_with_retries(self, group: list[Report]) -> None:
        if not group:
            return None
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
