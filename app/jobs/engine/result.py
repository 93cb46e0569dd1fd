"""The result of a task."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self


class ResultStatus(StrEnum):
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True)
class Result:
    task_id: str
    status: ResultStatus
    data: Any = None
    """JSON: what the script returned."""
    error: str | None = None
    started_at: datetime | None = None
    """None if no worker has begun the task."""
    completed_at: datetime | None = None

    @classmethod
    def success(cls, task_id: str, data: Any, started_at: datetime, completed_at: datetime) -> Self:
        return cls(task_id, ResultStatus.SUCCESS, data, None, started_at, completed_at)

    @classmethod
    def failed(
        cls, task_id: str, error: str, started_at: datetime | None = None, completed_at: datetime | None = None
    ) -> Self:
        return cls(task_id, ResultStatus.FAILED, None, error, started_at, completed_at)

    @classmethod
    def cancelled(cls, task_id: str, started_at: datetime | None = None, completed_at: datetime | None = None) -> Self:
        return cls(task_id, ResultStatus.CANCELLED, None, "cancelled", started_at, completed_at)

    @property
    def is_success(self) -> bool:
        return self.status is ResultStatus.SUCCESS

    def to_dict(self) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "status": self.status.value,
            "data": self.data,
            "error": self.error,
            "started_at": self.started_at.isoformat() if self.started_at else None,
            "completed_at": self.completed_at.isoformat() if self.completed_at else None,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return cls(
            values["task_id"],
            ResultStatus(values["status"]),
            values["data"],
            values["error"],
            _moment(values["started_at"]),
            _moment(values["completed_at"]),
        )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
