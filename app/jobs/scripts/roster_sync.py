"""Takes the newest lists of students and elders, and publishes what has changed.

Lists and limits come from the settings ROSTER_…; see docs/roster.md. Any number of runs may be asked for at the same
time: one works, and the others end at once as partial.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.jobs.engine.execution_context import ExecutionContext
from app.jobs.engine.task import TaskType
from app.matching.service import Matching, matching_on
from app.roster.contract import RunParts, RunStatus
from app.roster.service import sync

# It parses by itself: a worker cannot have processes of multiprocessing, whose tracker it has not inherited.
TASK_TYPE = TaskType.CPU_BOUND
TIMEOUT_S = 2 * 3600.0
MAX_RETRIES = 2


class RosterSyncParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kinds: tuple[str, ...] = Field((), description="Only these kinds; all that have lists if empty.")
    dry_run: bool = Field(False, description="Only tell what would change, and whom it would hit.")


def _matching(context: ExecutionContext) -> Matching:
    if context.clockwork is None:
        raise RuntimeError("This engine was started without Redis, which people who leave the service need.")
    return matching_on(context.db, context.clockwork, context.settings)


class SyncCancelled(Exception):
    """Ends the run. Before its commit everything is rolled back; after it, the next run brings the people who are
    left."""


class NothingTaken(Exception):
    """All lists were refused. The job fails, because nobody reads the results of jobs that succeed."""


def run(params: RosterSyncParams, context: ExecutionContext) -> dict[str, Any]:
    parts = RunParts()

    def step(place: str, part: str, records: int) -> None:
        if context.cancelled:
            raise SyncCancelled
        done, note = parts.reach(place, part, records)
        context.progress(done, None, note)

    try:
        report = sync(
            context.db,
            _matching(context),
            context.settings,
            params.kinds,
            dry_run=params.dry_run,
            step=step,
        )
    except SyncCancelled:
        return {"cancelled": True}
    if report.status is RunStatus.FAILED:
        raise NothingTaken(" ".join(f"{source}: {refusal['detail']}" for source, refusal in report.refused.items()))
    return report.to_dict()
