"""What the engines have in common: a bounded queue of tasks, and the results that nobody has fetched yet."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from app.jobs.engine.input_queue import InputQueue
from app.jobs.engine.output_queue import OutputQueue
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task, TaskType


class QueuedEngine(ABC):
    def __init__(self, input_capacity: int, results_kept: int) -> None:
        self._input = InputQueue(input_capacity)
        self._output = OutputQueue(results_kept)

    @abstractmethod
    def _wake(self) -> None:
        """Called when tasks were put into the queue."""

    @abstractmethod
    def _room(self, task_type: TaskType) -> int:
        """How many more tasks could begin at once; below 0 if more wait than can."""

    @abstractmethod
    def shutdown(self, drain_s: float = 30.0) -> list[Task]: ...

    def submit_task(self, task: Task, *, wait_s: float = 0.0) -> str:
        return self.submit_batch([task], wait_s=wait_s)[0]

    def submit_batch(self, tasks: Sequence[Task], *, wait_s: float = 0.0) -> list[str]:
        self._output.expect(tasks)
        ids = [task.id for task in tasks]
        try:
            self._input.put(tasks, wait_s)
        except Exception:
            self._output.forget(ids)
            raise
        self._wake()
        return ids

    def get_result(self, task_id: str, timeout: float | None = None) -> Result:
        return self._output.get(task_id, timeout)

    def as_completed(self, task_ids: Sequence[str], timeout: float | None = None) -> Iterator[Result]:
        return self._output.as_completed(task_ids, timeout)

    def pending_tasks(self) -> dict[str, Task]:
        return self._output.pending()

    @property
    def free(self) -> Mapping[str, int]:
        return {type_.value: max(self._room(type_), 0) for type_ in TaskType}

    def _give_back(self) -> list[Task]:
        """Whoever waits for a result of these tasks is told that they are unknown."""
        given_back = self._output.pending()
        for id_ in given_back:
            self._input.remove(id_)
        self._output.forget(list(given_back))
        return list(given_back.values())

    def _queues(self) -> dict[str, str]:
        """Their state, for `status`."""
        return {
            "input": f"{self._input.depth()} of {self._input.capacity} tasks",
            "output": f"{self._output.depth()} results",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.shutdown(0.0)
