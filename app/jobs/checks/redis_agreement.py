"""Compares Redis with PostgreSQL. Redis follows a commit within seconds, so only a difference that lasts counts."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import text

from app.db.database import Database
from app.jobs.checks.ask import Example, PromiseAnswer
from app.jobs.checks.promises import Promise
from app.redis_store.contract import Clockwork, HeldKeys, RedisUnavailable, to_ms

PAUSE_S = 0.5
AT_ONCE = 500

# The columns of `OpenTask`. A task that is due is left out: a matcher that claims it moves its deadline in Redis.
UNCHANGED = """
SELECT t.id, t.updated_at, t.next_step_at, o.student_id,
       array(SELECT seen.student_id FROM offers seen WHERE seen.task_id = t.id) AS seen
FROM tasks t LEFT JOIN offers o ON o.task_id = t.id AND o.state = 'PENDING'
WHERE t.status IN ('PENDING', 'ASSIGNED', 'STARTED')
  AND t.updated_at < clock_timestamp() - make_interval(secs => :settle_s)
  AND (t.next_step_at IS NULL OR t.next_step_at > clock_timestamp() + interval '2 s')
"""
ENDED = """
SELECT id FROM tasks WHERE id = ANY(:ids) AND status NOT IN ('PENDING', 'ASSIGNED', 'STARTED')
  AND updated_at < clock_timestamp() - make_interval(secs => :settle_s)
"""


class OpenTask(NamedTuple):
    id: UUID
    updated_at: Any
    next_step_at: Any
    student_id: int | None
    """The student who is being asked."""
    seen: Sequence[int]
    """The students who were asked or skipped."""


@dataclass(frozen=True)
class RedisQuestion:
    name: str
    means: str
    advice: str


REFILL = (
    "A matcher fills Redis again within seconds, so look whether one runs. Until then PostgreSQL alone decides, and"
    " nothing is lost. `DEL clockwork_complete` makes a matcher write all keys again."
)
COMPLETE = RedisQuestion(
    "Redis is not marked as complete", "Redis was emptied or missed a change, and is not filled yet.", REFILL
)
DISAGREES = RedisQuestion(
    "Redis and PostgreSQL disagree about an open task",
    "The pending key or the deadline differs from the row, so the task is handled late.",
    REFILL,
)
LISTED = RedisQuestion(
    "a candidate list with a student who was asked already",
    "The list is older than the task. The student is left out when their turn comes.",
    "Nothing to do for the elder. If it lasts, look whether a matcher runs.",
)
ENDED_KEYS = RedisQuestion(
    "a Redis key of a task that has ended",
    "A matcher looks at the task in vain once.",
    "Nothing to do for the elder. If it lasts, look whether a matcher runs.",
)
REDIS_QUESTIONS = (COMPLETE, DISAGREES, LISTED, ENDED_KEYS)

Found = dict[RedisQuestion, dict[str, Example]]
"""The violations of each question, by what makes them the same at the next comparison."""


def ask_redis(
    db: Database, clockwork: Clockwork, cancel: Event, *, settle_s: float, patience_s: float, examples: int
) -> list[PromiseAnswer]:
    """Compares until nothing differs, or until `patience_s` is over. What differed each time is a violation."""
    try:
        lasting = _lasting(_comparisons(db, clockwork, settle_s), cancel, patience_s)
    except RedisUnavailable as error:
        return redis_not_asked(str(error))
    return [
        PromiseAnswer(
            question.name,
            Promise.DEADLINE,
            len(lasting[question]),
            [example for example in lasting[question].values() if example][:examples],
            question.means,
            question.advice,
        )
        for question in REDIS_QUESTIONS
    ]


def redis_not_asked(why: str) -> list[PromiseAnswer]:
    return [
        PromiseAnswer(
            question.name, Promise.DEADLINE, None, [], question.means, question.advice, f"{why} Nothing was compared."
        )
        for question in REDIS_QUESTIONS
    ]


def _lasting(comparisons: Iterator[Found], cancel: Event, patience_s: float) -> Found:
    until = time.monotonic() + patience_s
    lasting = next(comparisons)
    while any(lasting.values()) and time.monotonic() < until and not cancel.wait(PAUSE_S):
        found = next(comparisons)
        lasting = {
            question: {same: example for same, example in examples.items() if same in found[question]}
            for question, examples in lasting.items()
        }
    return lasting


def _comparisons(db: Database, clockwork: Clockwork, settle_s: float) -> Iterator[Found]:
    while True:
        before = _unchanged(db, settle_s)
        held = _held(clockwork, [task.id for task in before])
        after = {(task.id, task.updated_at) for task in _unchanged(db, settle_s)}
        still = [task for task in before if (task.id, task.updated_at) in after]
        yield {
            COMPLETE: {} if clockwork.is_complete() else {"": {}},
            DISAGREES: _examples(disagreements(still, held)),
            LISTED: _examples(listed_again(still, held)),
            ENDED_KEYS: _examples(_ended(db, clockwork, settle_s)),
        }


def _examples(task_ids: Iterable[UUID]) -> dict[str, Example]:
    return {str(task_id): {"task_id": str(task_id)} for task_id in task_ids}


def disagreements(tasks: Sequence[OpenTask], held: Mapping[UUID, HeldKeys]) -> list[UUID]:
    """The tasks whose pending key and deadline are not those of the row."""
    wanted = {task.id: (task.student_id, to_ms(task.next_step_at) if task.next_step_at else None) for task in tasks}
    return [task_id for task_id, row in wanted.items() if (held[task_id].student_id, held[task_id].due_ms) != row]


def listed_again(tasks: Sequence[OpenTask], held: Mapping[UUID, HeldKeys]) -> list[UUID]:
    return [task.id for task in tasks if set(task.seen) & set(held[task.id].candidates)]


def _unchanged(db: Database, settle_s: float) -> list[OpenTask]:
    with db.reading() as conn:
        return [OpenTask(*row) for row in conn.execute(text(UNCHANGED), {"settle_s": settle_s})]


def _held(clockwork: Clockwork, task_ids: Sequence[UUID]) -> dict[UUID, HeldKeys]:
    found: dict[UUID, HeldKeys] = {}
    for start in range(0, len(task_ids), AT_ONCE):
        found |= clockwork.held(task_ids[start : start + AT_ONCE])
    return found


def _ended(db: Database, clockwork: Clockwork, settle_s: float) -> set[UUID]:
    ended: set[UUID] = set()
    for portion in clockwork.task_ids():
        with db.reading() as conn:
            rows = conn.execute(text(ENDED), {"ids": list(portion), "settle_s": settle_s})
            ended |= {row.id for row in rows}
    return ended
