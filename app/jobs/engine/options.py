"""How an embedded engine is set up."""

from collections.abc import Callable
from dataclasses import dataclass

from app.foundation.backoff import BACKOFF_S
from app.jobs.engine.execution_context import JobResources
from app.jobs.engine.task import TaskType

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class EngineOptions:
    io_workers: int = 1
    io_threads: int = 8
    cpu_workers: int = 2
    cpu_threads: int = 1
    worker_memory_bytes: int = 1024 * MEGABYTE
    input_capacity: int = 1000
    """Tasks that wait for a worker."""
    results_kept: int = 10_000
    """Results that nobody has fetched and nobody waits for."""
    cancel_grace_s: float = 10.0
    artifact_bytes: int = 16 * MEGABYTE
    artifacts_bytes: int = 64 * MEGABYTE
    backoff_s: tuple[float, ...] = BACKOFF_S
    preload: tuple[str, ...] = ()
    """Modules that all workers share instead of importing them one by one."""
    resources: Callable[[], JobResources] | None = None
    """A function of a module, because workers find it by its name."""

    def workers(self, task_type: TaskType) -> int:
        return self.io_workers if task_type is TaskType.IO_BOUND else self.cpu_workers

    def threads(self, task_type: TaskType) -> int:
        return self.io_threads if task_type is TaskType.IO_BOUND else self.cpu_threads
