"""The interface of the engines that run tasks: embedded worker processes, or a cluster of machines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from app.jobs.engine.result import Result
from app.jobs.engine.task import Task


@dataclass(frozen=True)
class Artifact:
    name: str
    content: bytes


@dataclass(frozen=True)
class Finished:
    """The end of a task: its result and what it leaves besides."""

    result: Result
    tries: int
    output: str = ""
    """The last 64 KB of what the task printed."""
    artifacts: tuple[Artifact, ...] = ()


class EngineListener(Protocol):
    """Told by threads of the engine, which wait until a call returns. An error in a call is logged."""

    def progressed(self, task_id: str, done: int, total: int | None, note: str) -> None: ...

    def finished(self, finished: Finished) -> None: ...


@dataclass(frozen=True)
class EngineMetrics:
    """Counted since the start of the engine."""

    input_put: int
    input_dropped: int
    output_put: int
    output_got: int
    active_threads: int
    pending: int
    retried: int
    workers_started: int
    workers_killed: int


class EngineHealth(StrEnum):
    RUNNING = "RUNNING"
    DRAINING = "DRAINING"
    STOPPED = "STOPPED"
    LOST = "LOST"
    """The cluster does not answer; its tasks are submitted again when it does."""


@dataclass(frozen=True)
class EngineStatus:
    health: EngineHealth
    components: Mapping[str, str] = field(default_factory=dict[str, str])
    """The state of each component, such as `io-0`, in words."""


class Engine(Protocol):
    def submit_task(self, task: Task, *, wait_s: float = 0.0) -> str:
        """Returns the id of the task. Raises `InputFull` if there is no room after `wait_s`."""
        ...

    def submit_batch(self, tasks: Sequence[Task], *, wait_s: float = 0.0) -> list[str]:
        """All of them or none."""
        ...

    def get_result(self, task_id: str, timeout: float | None = None) -> Result:
        """Waits for the result and hands it out once. Raises `ResultTimeout` or `UnknownTask`."""
        ...

    def as_completed(self, task_ids: Sequence[str], timeout: float | None = None) -> Iterator[Result]:
        """The results in the order in which they come."""
        ...

    def pending_tasks(self) -> dict[str, Task]:
        """The tasks that have no result yet."""
        ...

    def cancel(self, task_id: str) -> bool:
        """A task that has not begun ends at once; a script that runs sees `context.cancelled`, and its worker is
        killed if it does not return within the grace time. False if there is no such task."""
        ...

    def extend_lease(self, until: float) -> None:
        """Workers stop at this monotonic time unless the lease is extended before, and nothing begins until it is
        extended again. Without a call there is no lease."""
        ...

    @property
    def free(self) -> Mapping[str, int]:
        """How many more tasks of each type could begin at once."""
        ...

    def metrics(self) -> EngineMetrics: ...

    def status(self) -> EngineStatus: ...

    def is_whole(self) -> bool:
        """False if it cannot go on by itself, so that its process has to be replaced."""
        ...

    def shutdown(self, drain_s: float) -> list[Task]:
        """Takes no more tasks, lets those that run finish, and returns those that it gives back."""
        ...
