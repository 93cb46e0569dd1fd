"""Records the results of attempts, many in one transaction."""

import threading
import time
from collections.abc import Callable, Sequence

import structlog

from app.db.database import Database
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


OnRecorded = Callable[[list[Report]], None]
"""Called with reports once they are recorded or given up."""


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
        lock = threading.Lock()
        self._arrived = threading.Condition(lock)
        self._written = threading.Condition(lock)
        self._waiting: list[tuple[Report, OnRecorded]] = []
        self._unwritten = 0
        self._is_closed = False
        self._give_up_at = float("inf")
        self._thread = threading.Thread(target=self._run, name="delivery-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, reports: Sequence[Report], on_recorded: OnRecorded) -> None:
        group = [(report, on_recorded) for report in reports]
        with self._arrived:
            self._unwritten += len(group)
            if self._group_s:
                self._waiting += group
                # The thread wakes for the first report and for a whole group. In between it would only wait on.
                if len(self._waiting) == len(group) or len(self._waiting) >= GROUP_SIZE:
                    self._arrived.notify()
                return
        self._write_all(group)

    def wait_until_written(self, timeout_s: float) -> None:
        """Until all reports are recorded or given up, or the time is over."""
        with self._written:
            self._written.wait_for(lambda: self._unwritten == 0, timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Records the remaining reports. False if the recorder could not finish within the timeout."""
        self._give_up_at = time.monotonic() + timeout_s
        with self._arrived:
            self._is_closed = True
            self._arrived.notify()
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
        while group := self._gather():
            self._write_all(group)

    def _gather(self) -> list[tuple[Report, OnRecorded]]:
        """Returns an empty list once the recorder is closed and all is written."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._waiting or self._is_closed)
            self._arrived.wait_for(lambda: len(self._waiting) >= GROUP_SIZE or self._is_closed, self._group_s)
            group, self._waiting = self._waiting[:GROUP_SIZE], self._waiting[GROUP_SIZE:]
            return group

    def _write_all(self, group: Sequence[tuple[Report, OnRecorded]]) -> None:
        self._write_with_retries([report for report, _ in group])
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
