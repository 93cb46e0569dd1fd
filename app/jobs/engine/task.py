"""A task of the engine: one run of a script."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self
from uuid import uuid4

MAX_RETRIES = 3


class TaskType(StrEnum):
    IO_BOUND = "io_bound"
    CPU_BOUND = "cpu_bound"


@dataclass(frozen=True)
class Task:
    id: str
    script_path: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """JSON only, because it crosses to another process, maybe on another machine."""
    task_type: TaskType = TaskType.IO_BOUND
    max_retries: int = MAX_RETRIES
    timeout_s: float | None = None
    """Of one try; None is without a limit."""

    @classmethod
    def create(
        cls,
        script_path: str,
        params: Mapping[str, Any] | None = None,
        task_type: TaskType = TaskType.IO_BOUND,
        max_retries: int = MAX_RETRIES,
        timeout_s: float | None = None,
    ) -> Self:
        return cls(str(uuid4()), script_path, params or {}, task_type, max_retries, timeout_s)

    def to_dict(self) -> dict[str, Any]:
        return {
            "task_id": self.id,
            "script_path": self.script_path,
            "params": dict(self.params),
            "task_type": self.task_type.value,
            "max_retries": self.max_retries,
            "timeout_s": self.timeout_s,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The keys that a producer may leave out get their defaults."""
        return cls(
            values["task_id"],
            values["script_path"],
            values.get("params", {}),
            TaskType(values.get("task_type", TaskType.IO_BOUND)),
            values.get("max_retries", MAX_RETRIES),
            values.get("timeout_s"),
        )
