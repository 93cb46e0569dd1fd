"""Claims jobs for the engine of this process, keeps their leases, and gives back what does not end in time."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import structlog
from sqlalchemy import Connection

from app.db.database import Database
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.loop import Bell, run_loop
from app.jobs import job_claims as claims
from app.jobs.end_recorder import EndRecorder
from app.jobs.engine.engine import Engine, Finished
from app.jobs.engine.errors import EngineError
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task, TaskType
from app.jobs.errors import ScriptBroken, ScriptUnknown
from app.jobs.failure_alarm import raise_alarm
from app.jobs.held_jobs import HeldJobs
from app.jobs.job_claims import ClaimedJob, KeptLease
from app.jobs.job_store import JOBS_CHANNEL, QUEUED_TOPIC
from app.jobs.metrics import JobMetrics

log = structlog.get_logger(__name__)

LEASE_MARGIN_S = 1.0
"""Workers stop this long before the lease ends, for clocks that run at different speeds."""
TOO_LATE_S = 0.3
MOST_UNRECORDED = 20
"""No job is claimed while so many ends wait to be recorded. Otherwise they, with their artifacts, would fill the memory
if the engine is faster than the database."""


@dataclass(frozen=True)
class RunnerOptions:
    lease_s: float
    most_claims: int
    poll_s: float = 1.0
    leave_s: float = 5.0
    """The longest time to record what has ended after the engine has stopped."""


class JobRunner:
    """`engine` reports to `held`. `find_script` raises `ScriptUnknown` or `ScriptBroken`."""

    def __init__(
        self,
        db: Database,
        engine: Engine,
        held: HeldJobs,
        find_script: Callable[[str], Path],
        options: RunnerOptions,
        metrics: JobMetrics,
    ) -> None:
        self.id = str(uuid4())
        self.metrics = metrics
        self.bell = held.bell
        self.beat_bell = Bell()
        """Rings when a job is to be cancelled."""
        self._db = db
        self._engine = engine
        self._held = held
        self._find_script = find_script
        self._options = options
        self._recorder = EndRecorder(db, held, metrics)
        self._leasing = threading.Lock()
        """Held while a task is submitted, and while the engine's lease changes: a process may be stopped between any
        two lines, for longer than the lease."""
        self._close_at = 0.0
        self._stopped = threading.Event()
        self._beating = threading.Thread(target=self._beat_on, name="job-leases", daemon=True)

    def start(self) -> None:
        """Begins to keep leases and to record ends."""
        self._recorder.start()
        self._beating.start()

    def is_whole(self) -> bool:
        return self._beating.is_alive() and self._recorder.is_alive() and self._engine.is_whole()

    def run(self, stop: threading.Event) -> None:
        """Claims until `stop` is set."""
        run_loop("jobs", self._turn, stop, sleep=self.bell.wait)

    def _turn(self) -> float:
        self.metrics.show_engine(self._engine.metrics(), self._engine.status())
        return 0.0 if self.claim_once() else self._options.poll_s

    def claim_once(self) -> int:
        """Claims as many jobs as can begin at once, and returns their number."""
        if self._is_over():
            # Without a lease the engine would stop what it begins.
            self.beat()
        free = {task_type: number for task_type in TaskType if (number := self._engine.free.get(task_type, 0)) > 0}
        if not free or self._held.unrecorded() >= MOST_UNRECORDED:
            return 0
        before = time.monotonic()
        with self._db.transaction() as conn:
            if before >= self._close_at:
                self._close_abandoned(conn)
            claimed = [
                job
                for task_type, number in free.items()
                for job in claims.claim(conn, task_type, number, self.id, self._options.lease_s)
            ]
            failpoint("jobs.claiming")
        failpoint("jobs.claimed")
        self.take(claimed, before)
        return len(claimed)

    def _close_abandoned(self, conn: Connection) -> None:
        for gone in claims.close_expired(conn, self._options.most_claims):
            log.error("job_abandoned", job_id=str(gone.id), job=gone.name, claims=gone.claims)
            raise_alarm(conn, gone.name)
        self._close_at = time.monotonic() + self._options.poll_s

    def run_here(self, ask: Callable[[Connection], UUID]) -> UUID:
        """Runs the job that `ask` asks for in this process, whichever other runners there are."""
        self.beat()
        before = time.monotonic()
        with self._db.transaction() as conn:
            job_id = ask(conn)
            job = claims.claim_one(conn, job_id, self.id, self._options.lease_s)
        while job is not None and not self.take([job], before):
            # A beat has begun between the claim and the begin of the job.
            before = time.monotonic()
            with self._db.transaction() as conn:
                job = claims.claim_one(conn, job_id, self.id, self._options.lease_s)
        return job_id

    def take(self, claimed: Sequence[ClaimedJob], claimed_at: float) -> bool:
        """Hands claimed jobs to the engine. `claimed_at` is a time by the monotonic clock before the claim. False if
        some were given back."""
        self.metrics.count_claimed(len(claimed))
        lease_until = claimed_at + self._options.lease_s - LEASE_MARGIN_S
        left: list[ClaimedJob] = []
        for job in claimed:
            try:
                is_taken = self._submit(job, lease_until)
            except (ScriptUnknown, ScriptBroken) as error:
                # It was found when the job was asked for.
                self._held.add(job, lease_until)
                self._held.finished(Finished(Result.failed(job.task_id, error.message), tries=0))
                continue
            except EngineError as error:
                self._held.drop(job.task_id)
                log.warning("job_not_taken", job_id=str(job.id), error_type=type(error).__name__)
                is_taken = False
            if is_taken:
                log.info("job_started", job_id=str(job.id), job=job.name, fence=job.fence)
            else:
                left.append(job)
        self._give_back(left)
        return not left

    def _submit(self, job: ClaimedJob, lease_until: float) -> bool:
        """False if the engine's lease is over, or lasts longer than that of the job, because the process stood still
        after the claim or a beat began before it."""
        task = self._task(job)
        with self._leasing:
            if lease_until < self._held.engine_lease_until or self._is_over():
                return False
            self._held.add(job, lease_until)
            self._engine.submit_task(task)
            return True

    def _task(self, job: ClaimedJob) -> Task:
        path = str(self._find_script(job.name))
        return Task(job.task_id, path, job.params, job.task_type, job.max_retries, job.timeout_s)

    def _is_over(self) -> bool:
        """Also if it ends so soon that the workers may not hear of a longer one in time."""
        return time.monotonic() >= self._held.engine_lease_until - TOO_LATE_S

    def _beat_on(self) -> None:
        every_s = self._options.lease_s / 3
        # The first claim begins with a beat of its own.
        self.beat_bell.wait(every_s)
        run_loop(
            "job-leases",
            lambda: self.beat() or every_s,
            self._stopped,
            sleep=self.beat_bell.wait,
            longest_pause_s=min(2.0, every_s),
        )

    def beat(self) -> None:
        """Prolongs the leases, cancels what is to be cancelled, and lets go of what another runner has claimed."""
        # From before the statement: the database may have prolonged the leases at any moment since then.
        lease_until = time.monotonic() + self._options.lease_s - LEASE_MARGIN_S
        held = self._held.all()
        kept: list[KeptLease] = []
        if held:
            with self._db.autocommit() as conn:
                kept = claims.keep_leases(conn, [(job.id, job.fence) for job in held], self._options.lease_s)
        ours = {lease.task_id for lease in kept}
        with self._leasing:
            if self._is_over():
                # The engine has stopped its workers.
                self._let_go(self._held.running(), "the lease had run out")
            self._let_go({job.task_id for job in held} - ours, "another runner has claimed it")
            self._held.prolong(ours, lease_until)
            running = self._held.running()
            self._let_go(running - self._engine.pending_tasks().keys(), "the engine has let it go")
            first_end = self._held.first_lease_end()
            self._held.engine_lease_until = lease_until if first_end is None else min(first_end, lease_until)
            self._engine.extend_lease(self._held.engine_lease_until)
        for lease in kept:
            if lease.is_cancelled:
                self._engine.cancel(lease.task_id)

    def _let_go(self, task_ids: Iterable[str], reason: str) -> None:
        """The end of these tasks is not recorded: whoever claims the jobs runs them again."""
        for task_id in self._held.running() & set(task_ids):
            job = self._held.drop(task_id)
            if job is not None:
                log.warning("job_lease_lost", job_id=str(job.id), job=job.name, reason=reason)
                self.metrics.count_lost_lease()
                self._engine.cancel(task_id)

    def _give_back(self, jobs: Sequence[ClaimedJob]) -> None:
        if not jobs:
            return
        try:
            with self._db.transaction() as conn:
                held = [(job.id, job.fence) for job in jobs]
                number = claims.give_back(conn, held, JOBS_CHANNEL, QUEUED_TOPIC)
        except Unavailable as error:
            # The leases run out instead.
            log.warning("jobs_not_given_back", count=len(jobs), code=error.code)
        else:
            log.info("jobs_given_back", count=number)

    def drain(self, drain_s: float) -> None:
        """Lets the running jobs finish, and gives back those that do not end in time."""
        left = self._engine.shutdown(drain_s)
        self._give_back([job for task in left if (job := self._held.drop(task.id)) is not None])
        self._recorder.close(self._options.leave_s)
        self._stopped.set()
        self.beat_bell.ring()
        self._beating.join(self._options.leave_s)
