"""Looks for broken promises in a live copy, after an incident.

Reads PostgreSQL and Redis and changes neither. `ok` is false if there is a violation, or a question without an answer;
`promises.txt` says what each violation means and what to do next.
"""

from datetime import datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from app.jobs.checks.ask import QUESTIONS, PromiseAnswer, ask, noticed_since, period
from app.jobs.checks.promise_report import promise_report
from app.jobs.checks.promises import AskedPeriod
from app.jobs.checks.redis_agreement import ask_redis, redis_not_asked
from app.jobs.engine.execution_context import ExecutionContext
from app.jobs.engine.task import TaskType

TASK_TYPE = TaskType.IO_BOUND
TIMEOUT_S = 3600
MAX_RETRIES = 0

DEFAULT_PERIOD = timedelta(days=7)
Since = datetime | Literal["all"] | None


class CheckPromisesParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    since: Since = Field(
        None,
        description="Tasks that were created from this time on (without an offset, in the service time zone), and all"
        " open tasks; `all` for the whole history. By default the last 7 days.",
    )
    grace_s: float = Field(60, ge=0, description="How long something may be overdue on a live copy, in seconds.")
    late_s: float = Field(
        30, ge=0, description="How long after its deadline an offer may have been closed, in seconds."
    )
    examples: int = Field(20, ge=1, le=1000, description="The most ids that are shown for a question.")
    timeout_s: float = Field(120, gt=0, le=1800, description="The most seconds for one question.")
    redis: bool = Field(True, description="Also compare Redis with PostgreSQL.")
    settle_s: float = Field(6, ge=0, description="A change younger than this need not have reached Redis.")
    patience_s: float = Field(10, ge=0, description="A difference of Redis counts if it lasts this long.")


def run(params: CheckPromisesParams, context: ExecutionContext) -> dict[str, Any]:
    db, now = context.db, context.db.now()
    begins = _begins(params.since, now, context.settings.time_zone)
    since = period(now, begins)
    scope = AskedPeriod(
        since,
        noticed_since(db, since),
        params.grace_s,
        params.late_s,
        context.settings.offer_ttl_s,
        context.settings.time_zone,
    )
    answers: list[PromiseAnswer] = []
    for question in QUESTIONS:
        if context.cancelled:
            return _result(answers, begins, complete=False)
        context.progress(len(answers), len(QUESTIONS) + 1, question.name)
        answers.append(ask(db, question, scope, examples=params.examples, timeout_s=params.timeout_s))
    context.progress(len(QUESTIONS), len(QUESTIONS) + 1, "Redis")
    answers += _ask_redis(params, context)
    context.progress(len(QUESTIONS) + 1, len(QUESTIONS) + 1, "done")
    words = "the whole history" if begins is None else f"since {begins.isoformat(timespec='seconds')}"
    context.artifact("promises.txt").write_text(promise_report(answers, words), encoding="utf-8")
    return _result(answers, begins, complete=True)


def _begins(since: Since, now: datetime, time_zone: str) -> datetime | None:
    if since is None:
        return now - DEFAULT_PERIOD
    if since == "all":
        return None
    return since if since.tzinfo else since.replace(tzinfo=ZoneInfo(time_zone))


def _ask_redis(params: CheckPromisesParams, context: ExecutionContext) -> list[PromiseAnswer]:
    if not params.redis:
        return []
    clockwork = context.clockwork
    if clockwork is None:
        return redis_not_asked("This engine was started without Redis.")
    return ask_redis(
        context.db,
        clockwork,
        context.cancel,
        settle_s=params.settle_s,
        patience_s=params.patience_s,
        examples=params.examples,
    )


def _result(answers: list[PromiseAnswer], begins: datetime | None, *, complete: bool) -> dict[str, Any]:
    return {
        "ok": complete and all(answer.ok for answer in answers),
        "complete": complete,
        "since": begins.isoformat() if begins else None,
        "violations": sum(answer.violations or 0 for answer in answers),
        "questions": [answer.to_json() for answer in answers],
    }
