"""The role `jobs`: a scheduler asks for the jobs that are due, and a runner runs what has been asked for."""

import threading

from app.db.wake import Announcer
from app.jobs.job_runner import JobRunner
from app.jobs.job_store import CANCEL_TOPIC, QUEUED_TOPIC
from app.jobs.scheduler import Scheduler

LEAVE_S = 5.0
"""The longest time that a thread besides the engine may take to stop."""


class JobsRole:
    def __init__(self, runner: JobRunner, scheduler: Scheduler, announcer: Announcer, drain_s: float) -> None:
        self.runner = runner
        self._scheduler = scheduler
        self._announcer = announcer
        self._drain_s = drain_s
        announcer.on(QUEUED_TOPIC, runner.bell.ring)
        announcer.on(CANCEL_TOPIC, runner.beat_bell.ring)

    def run(self, stop: threading.Event) -> bool:
        """Until `stop` is set; then it drains. False if a thread was lost, so that the process has to be replaced."""
        claiming, asking = (
            threading.Thread(target=part.run, args=(stop,), name=name, daemon=True)
            for name, part in (("job-claims", self.runner), ("scheduler", self._scheduler))
        )
        self.runner.start()
        self._announcer.start()
        claiming.start()
        asking.start()
        is_whole = True
        while not stop.wait(1):
            is_whole = self.runner.is_whole() and claiming.is_alive() and asking.is_alive()
            if not is_whole:
                stop.set()
        self.runner.bell.ring()
        self._scheduler.bell.ring()
        for thread in (claiming, asking):
            thread.join(LEAVE_S)
        self._announcer.close()
        self.runner.drain(max(self._drain_s - 2 * LEAVE_S, 1.0))
        return is_whole
