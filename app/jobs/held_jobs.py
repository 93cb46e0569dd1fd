"""The jobs that this process has claimed, and what the engine reports about them. In memory only."""

import queue
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from app.foundation.loop import Bell
from app.foundation.storable import made_storable
from app.jobs.engine.engine import Finished
from app.jobs.engine.execution_context import LARGEST_STEP, MOST_NOTE_CHARACTERS
from app.jobs.job_claims import ClaimedJob


@dataclass
class HeldJob:
    job: ClaimedJob
    lease_until: float
    """By the monotonic clock of this process."""
    ended: bool = False
    """The engine has reported the end, which may not be recorded yet."""
    progress: dict[str, Any] | None = field(default=None, repr=False)
    """The last progress that is not written yet."""


@dataclass(frozen=True)
class ReportedEnd:
    job: ClaimedJob
    finished: Finished
    progress: dict[str, Any] | None = field(default=None, repr=False)
    """The last one, if it is not written yet."""


class HeldJobs:
    """The listener of the engine. Its calls come from threads of the engine and return at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, HeldJob] = {}
        self.engine_lease_until = float("-inf")
        """What the engine was told last, by the monotonic clock."""
        self.bell = Bell()
        """Rings when a thread of the engine is free again, and when a job may be waiting for one."""
        self._ends: queue.SimpleQueue[ReportedEnd | None] = queue.SimpleQueue()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, job: ClaimedJob, lease_until: float) -> None:
        with self._lock:
            self._held[job.task_id] = HeldJob(job, lease_until)

    def prolong(self, task_ids: Iterable[str], lease_until: float) -> None:
        with self._lock:
            for task_id in task_ids:
                if task_id in self._held:
                    self._held[task_id].lease_until = lease_until

    def first_lease_end(self) -> float | None:
        """When the first lease of a job ends that has not ended itself."""
        with self._lock:
            return min((held.lease_until for held in self._held.values() if not held.ended), default=None)

    def drop(self, task_id: str) -> ClaimedJob | None:
        """What the engine reports about it from now on is ignored."""
        with self._lock:
            held = self._held.pop(task_id, None)
        return held.job if held is not None else None

    def all(self) -> list[ClaimedJob]:
        with self._lock:
            return [held.job for held in self._held.values()]

    def running(self) -> set[str]:
        """The ids of the tasks whose end the engine has not reported."""
        with self._lock:
            return {task_id for task_id, held in self._held.items() if not held.ended}

    def progressed(self, task_id: str, done: int, total: int | None, note: str) -> None:
        progress = {
            "done": min(max(int(done), 0), LARGEST_STEP),
            "total": None if total is None else min(max(int(total), 0), LARGEST_STEP),
            "note": made_storable(str(note))[:MOST_NOTE_CHARACTERS],
        }
        with self._lock:
            held = self._held.get(task_id)
            if held is not None:
                held.progress = {"id": str(held.job.id), "fence": held.job.fence, **progress}

    def finished(self, finished: Finished) -> None:
        task_id, is_late = finished.result.task_id, time.monotonic() >= self.engine_lease_until
        with self._lock:
            held = self._held.get(task_id)
            if held is None or held.ended:
                return
            if is_late and not finished.result.is_success:
                # The engine has stopped its workers because the lease was over. The job runs again.
                del self._held[task_id]
                return
            held.ended = True
            progress, held.progress = held.progress, None
        self._ends.put(ReportedEnd(held.job, finished, progress))
        self.bell.ring()

    def take_progress(self) -> list[dict[str, Any]]:
        """What has changed since the last call."""
        with self._lock:
            changed = [held.progress for held in self._held.values() if held.progress is not None]
            for held in self._held.values():
                held.progress = None
        return changed

    def unrecorded(self) -> int:
        """How many ends are reported and not recorded yet."""
        with self._lock:
            return sum(held.ended for held in self._held.values())

    def next_ends(self, timeout_s: float, most: int) -> list[ReportedEnd]:
        """Waits for the first only."""
        ends: list[ReportedEnd | None] = []
        with suppress(queue.Empty):
            ends.append(self._ends.get(timeout=timeout_s))
            while len(ends) < most:
                ends.append(self._ends.get_nowait())
        return [end for end in ends if end is not None]

    def wake(self) -> None:
        """Ends the wait of `next_ends`."""
        self._ends.put(None)
