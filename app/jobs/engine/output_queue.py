"""The results that nobody has fetched yet, in whatever order the tasks end."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from app.jobs.engine.errors import ResultTimeout, UnknownTask
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task


class OutputQueue:
    """Knows the pending tasks too: a caller may wait for the result of no other task."""

    def __init__(self, kept: int) -> None:
        self.total_put = 0
        self.total_got = 0
        self._most_kept = kept
        self._pending: dict[str, Task] = {}
        self._results: OrderedDict[str, Result] = OrderedDict()
        self._wanted: dict[str, int] = {}
        """How many callers wait for a result, by task: it is kept for them, however many others come."""
        self._changed = threading.Condition()

    def expect(self, tasks: Sequence[Task]) -> None:
        with self._changed:
            for task in tasks:
                if task.id in self._pending:
                    raise ValueError(f"the task {task.id} is pending already")
                self._pending[task.id] = task

    def forget(self, task_ids: Sequence[str]) -> None:
        """They get no result. A caller that waits for one is told that the task is unknown."""
        with self._changed:
            for id_ in task_ids:
                self._pending.pop(id_, None)
            self._changed.notify_all()

    def put(self, result: Result) -> None:
        with self._changed:
            self._pending.pop(result.task_id, None)
            self.total_put += 1
            self._results[result.task_id] = result
            self._drop_oldest()
            if result.task_id in self._wanted:
                self._changed.notify_all()

    def get(self, task_id: str, timeout: float | None) -> Result:
        for result in self.as_completed([task_id], timeout):
            return result
        raise UnknownTask(task_id)

    def as_completed(self, task_ids: Sequence[str], timeout: float | None) -> Iterator[Result]:
        """Each result once, as it comes. A task that is unknown, or was given back, ends the wait with an error."""
        give_up = None if timeout is None else time.monotonic() + timeout
        left = dict.fromkeys(task_ids)
        self._want(left, 1)
        try:
            while left:
                ready = self._wait(left, give_up)
                for result in ready:
                    del left[result.task_id]
                    self._want((result.task_id,), -1)
                yield from ready
        finally:
            self._want(left, -1)

    def pending(self) -> dict[str, Task]:
        with self._changed:
            return dict(self._pending)

    def depth(self) -> int:
        with self._changed:
            return len(self._results)

    def _wait(self, task_ids: dict[str, None], give_up: float | None) -> list[Result]:
        with self._changed:
            while True:
                ready = [self._results.pop(id_) for id_ in task_ids if id_ in self._results]
                if ready:
                    self.total_got += len(ready)
                    return ready
                unknown = next((id_ for id_ in task_ids if id_ not in self._pending), None)
                if unknown is not None:
                    raise UnknownTask(unknown)
                wait_s = None if give_up is None else give_up - time.monotonic()
                if wait_s is not None and wait_s <= 0:
                    raise ResultTimeout(f"{len(task_ids)} tasks have no result yet, {next(iter(task_ids))} among them")
                self._changed.wait(wait_s)

    def _want(self, task_ids: dict[str, None] | tuple[str, ...], change: int) -> None:
        with self._changed:
            for id_ in task_ids:
                wanted = self._wanted.get(id_, 0) + change
                if wanted:
                    self._wanted[id_] = wanted
                else:
                    self._wanted.pop(id_, None)
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        excess = len(self._results) - self._most_kept
        if excess <= 0:
            return
        nobody_waits = [id_ for id_ in self._results if id_ not in self._wanted]
        for id_ in nobody_waits[:excess]:
            del self._results[id_]
