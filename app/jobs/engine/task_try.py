"""One try of a task, as the engine keeps it while the task has no result."""

from dataclasses import dataclass, field
from datetime import datetime

from app.jobs.engine.engine import Artifact
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task


@dataclass
class TaskTry:
    task: Task
    number: int = 1
    is_suspect: bool = False
    """It ran in a worker that died with several tasks. It runs alone now, which shows whether it was the cause."""
    sent_at: datetime | None = None
    began: float | None = None
    """By the monotonic clock: when a worker that was ready had it."""
    cancelled_at: float | None = None
    false_starts: int = 0
    """Workers that were given this try and ended before they were ready."""
    output: str = ""
    artifacts: list[Artifact] = field(default_factory=list[Artifact])

    def again(self, *, counts: bool, is_suspect: bool = False, is_false_start: bool = False) -> "TaskTry":
        """The next try; one that failed by no fault of its own does not count."""
        return TaskTry(
            self.task,
            self.number + counts,
            is_suspect,
            cancelled_at=self.cancelled_at,
            false_starts=self.false_starts + is_false_start,
        )


@dataclass(frozen=True)
class Ended:
    """What a try came to; without a result it is repeated and does not count."""

    attempt: TaskTry
    result: Result | None
    may_retry: bool = True
    is_suspect: bool = False
    is_false_start: bool = False
