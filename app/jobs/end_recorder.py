"""A thread that writes the ends and the progress of jobs to the database."""

import threading
import time
from collections.abc import Sequence

import structlog
from sqlalchemy import Connection

from app.db.database import Database
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.foundation.loop import DoublingPause
from app.jobs.held_jobs import HeldJobs, ReportedEnd
from app.jobs.job_claims import save_progress
from app.jobs.job_ends import STATUS_OF, JobEnd, end_of, record_end
from app.jobs.metrics import JobMetrics
from app.jobs.states import JobStatus

log = structlog.get_logger(__name__)

PROGRESS_EVERY_S = 1.0
MOST_AT_ONCE = 20


class EndRecorder:
    """During an outage of the database it keeps the ends. Without them the jobs would run again."""

    def __init__(self, db: Database, held: HeldJobs, metrics: JobMetrics) -> None:
        self._db = db
        self._held = held
        self._metrics = metrics
        self._give_up_at = float("inf")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job-end-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout_s: float) -> bool:
        """Records what has been reported. False if the recorder could not finish within the timeout."""
        self._give_up_at = time.monotonic() + timeout_s
        self._closing.set()
        self._held.wake()
        self._thread.join(timeout_s + 1)
        return not self._thread.is_alive()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        progress_at = 0.0
        while True:
            closing = self._closing.is_set()
            ends = self._held.next_ends(0.0 if closing else PROGRESS_EVERY_S, MOST_AT_ONCE)
            if ends:
                failpoint("jobs.finished")
                if len(ends) == 1 or not self._record_together(ends):
                    for end in ends:
                        self._record_with_retries(end)
                failpoint("jobs.recorded")
                # No job is claimed while too many ends wait.
                self._held.bell.ring()
            elif closing:
                return
            if time.monotonic() >= progress_at:
                self._save_progress()
                progress_at = time.monotonic() + PROGRESS_EVERY_S

    def _save_progress(self) -> None:
        changed = self._held.take_progress()
        if not changed:
            return
        try:
            with self._db.autocommit() as conn:
                save_progress(conn, changed)
        except Unavailable:
            # The next progress replaces it.
            log.warning("job_progress_not_saved", count=len(changed))
        except Exception as error:
            log.error("job_progress_not_saved", count=len(changed), **describe_error(error))

    def _record_together(self, ends: Sequence[ReportedEnd]) -> bool:
        """One commit for all. False if that is not possible; then nothing is recorded."""
        try:
            with self._db.transaction() as conn:
                ours = [self._write(conn, reported, end_of(reported.finished)) for reported in ends]
        except Exception as error:
            log.warning("job_ends_recorded_one_by_one", count=len(ends), **describe_error(error))
            return False
        for reported, is_ours in zip(ends, ours, strict=True):
            self._tell(reported, is_ours)
            self._held.drop(reported.job.task_id)
        return True

    def _record_with_retries(self, reported: ReportedEnd) -> None:
        job, end = reported.job, end_of(reported.finished)
        pause = DoublingPause()
        while True:
            try:
                self._record(reported, end)
                break
            except Unavailable:
                pause_s = pause.next_s()
                log.warning("job_end_waits", job_id=str(job.id), pause_s=pause_s)
            except Exception as error:
                log.error("job_end_not_storable", job_id=str(job.id), **describe_error(error))
                if end.status is JobStatus.FAILED and not end.artifacts:
                    break
                end = end.failed(f"What the job left could not be stored ({type(error).__name__}).")
                continue
            if time.monotonic() + pause_s > self._give_up_at:
                # The lease runs out, and the job runs again.
                log.error("job_end_given_up", job_id=str(job.id))
                break
            time.sleep(pause_s)
        self._held.drop(job.task_id)

    def _record(self, reported: ReportedEnd, end: JobEnd) -> None:
        with self._db.transaction() as conn:
            is_ours = self._write(conn, reported, end)
        self._tell(reported, is_ours)

    def _write(self, conn: Connection, reported: ReportedEnd, end: JobEnd) -> bool:
        if reported.progress is not None:
            save_progress(conn, [reported.progress])
        return record_end(conn, reported.job.id, reported.job.fence, end)

    def _tell(self, reported: ReportedEnd, is_ours: bool) -> None:
        job, finished = reported.job, reported.finished
        if is_ours:
            status = STATUS_OF[finished.result.status]
            log.info("job_ended", job_id=str(job.id), job=job.name, status=status.value, tries=finished.tries)
            self._metrics.count_ended(status)
        else:
            log.warning("job_end_refused", job_id=str(job.id), job=job.name)
            self._metrics.count_lost_lease()
