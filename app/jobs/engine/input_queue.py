"""The tasks that wait for a worker. Bounded, so that a producer that is too fast notices it."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from app.jobs.engine.errors import EngineStopped, InputFull
from app.jobs.engine.task import Task, TaskType


class InputQueue:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.total_put = 0
        self.total_dropped = 0
        self._waiting: dict[TaskType, OrderedDict[str, Task]] = {type_: OrderedDict() for type_ in TaskType}
        self._changed = threading.Condition()
        self._closed = False

    def put(self, tasks: Sequence[Task], wait_s: float = 0.0) -> None:
        """All of them or none, within `wait_s`."""
        with self._changed:
            if len(tasks) > self.capacity or not self._changed.wait_for(lambda: self._has_room(len(tasks)), wait_s):
                self.total_dropped += len(tasks)
                raise InputFull(f"{self._depth()} of {self.capacity} tasks wait: no room for {len(tasks)} more")
            if self._closed:
                raise EngineStopped("the engine takes no more tasks")
            for task in tasks:
                self._waiting[task.task_type][task.id] = task
            self.total_put += len(tasks)

    def take(self, task_type: TaskType) -> Task | None:
        with self._changed:
            waiting = self._waiting[task_type]
            if not waiting:
                return None
            _, task = waiting.popitem(last=False)
            self._changed.notify_all()
            return task

    def remove(self, task_id: str) -> Task | None:
        with self._changed:
            for waiting in self._waiting.values():
                task = waiting.pop(task_id, None)
                if task is not None:
                    self._changed.notify_all()
                    return task
            return None

    def waiting(self, task_type: TaskType) -> int:
        return len(self._waiting[task_type])

    def close(self) -> list[Task]:
        """Takes no more, and gives back what waits."""
        with self._changed:
            self._closed = True
            tasks = [task for waiting in self._waiting.values() for task in waiting.values()]
            for waiting in self._waiting.values():
                waiting.clear()
            self._changed.notify_all()
            return tasks

    def depth(self) -> int:
        with self._changed:
            return self._depth()

    def _depth(self) -> int:
        return sum(len(waiting) for waiting in self._waiting.values())

    def _has_room(self, number: int) -> bool:
        return self._closed or self._depth() + number <= self.capacity
