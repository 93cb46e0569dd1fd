"""Forget personal data after its time, and keep the counts.

Each kind of data has its own time, `RETAIN_<KIND>_DAYS`; see docs/privacy.md. Rows are forgotten in short bites beside
all other work. An interrupted run may be repeated at any time.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.jobs.engine.execution_context import ExecutionContext
from app.jobs.engine.task import TaskType
from app.jobs.retention.old_jobs import OLD_JOBS
from app.privacy.service import KINDS, run_retention

ALL_KINDS = {**KINDS, **OLD_JOBS}


class PrivacyRetentionParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    dry_run: bool = Field(False, description="Only count what would be forgotten.")
    kinds: tuple[str, ...] = Field((), description=f"Only these of: {', '.join(ALL_KINDS)}. All of them if empty.")

    @field_validator("kinds")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [kind for kind in value if kind not in ALL_KINDS]
        if unknown:
            raise ValueError(f"there is no kind {unknown[0]!r}; there are: {', '.join(ALL_KINDS)}")
        return value


TASK_TYPE = TaskType.IO_BOUND
# The first run over the data of years takes hours. If it runs out of time, the next one goes on.
TIMEOUT_S = 4 * 3600.0
MAX_RETRIES = 1


def run(params: PrivacyRetentionParams, context: ExecutionContext) -> dict[str, Any]:
    return run_retention(
        context.db,
        context.settings,
        kinds=params.kinds,
        known=ALL_KINDS,
        dry_run=params.dry_run,
        progress=context.progress,
        cancelled=lambda: context.cancelled,
    )
