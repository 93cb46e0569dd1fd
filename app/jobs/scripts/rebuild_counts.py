"""Computes kept values again from tasks and offers, reports those that have drifted, and repairs them if asked to.

Of students: how many tasks they completed this month, their open task, and whether they are active. Of tasks: how many
students were asked and skipped. Without `fix` nothing is changed.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import text

from app.jobs.checks import count_drift
from app.jobs.checks.count_drift import Drift
from app.jobs.engine.execution_context import ExecutionContext
from app.jobs.engine.task import TaskType

TASK_TYPE = TaskType.IO_BOUND
TIMEOUT_S = 3600

COUNT_TASKS = text("SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'tasks'::regclass")


class RebuildCountsParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    fix: bool = Field(False, description="Also repair what has drifted.")
    portion: int = Field(20_000, ge=1, le=1_000_000, description="How many tasks are read at once.")
    examples: int = Field(20, ge=0, le=1000, description="The most rows that are shown of each kind.")


def run(params: RebuildCountsParams, context: ExecutionContext) -> dict[str, Any]:
    students, tasks = Drift(params.examples), Drift(params.examples)
    context.progress(0, None, "students")
    _check_students(params, context, students)
    complete = _check_tasks(params, context, tasks)
    drifted = students.found + tasks.found
    return {
        "ok": complete and students.repaired + tasks.repaired == drifted,
        "complete": complete,
        "fix": params.fix,
        "students": students.to_json(fix=params.fix),
        "tasks": tasks.to_json(fix=params.fix),
    }


def _check_students(params: RebuildCountsParams, context: ExecutionContext, seen: Drift) -> None:
    drifts = count_drift.find_students(context.db, context.settings.time_zone)
    for drift in drifts:
        seen.add(count_drift.student_example(drift))
    if params.fix and drifts:
        seen.repaired = len(count_drift.repair_students(context.db, drifts, context.settings))


def _check_tasks(params: RebuildCountsParams, context: ExecutionContext, seen: Drift) -> bool:
    """False if it was cancelled."""
    with context.db.reading() as conn:
        total: int = conn.execute(COUNT_TASKS).scalar_one()
    for number, drifts in enumerate(count_drift.portions(context.db, params.portion), start=1):
        for drift in drifts:
            seen.add(count_drift.task_example(drift))
        if params.fix and drifts:
            seen.repaired += len(count_drift.repair_tasks(context.db, drifts))
        context.progress(min(number * params.portion, total) if total > 0 else 0, total if total > 0 else None, "tasks")
        if context.cancelled:
            return False
    return True
