"""Looks for broken promises in PostgreSQL, Redis, the recorded pushes and the answers that people received."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from app.jobs.checks.questions_of_history import OF_HISTORY
from app.jobs.checks.questions_of_roster import OF_ROSTER
from app.jobs.checks.redis_agreement import UNCHANGED, OpenTask, disagreements
from app.redis_store import keys
from app.redis_store.store import RedisClockwork
from tests.support.matching import ANY_MOMENT, WHOLE_HISTORY
from tests.torture.answers import AnswerLog
from tests.torture.fault_windows import Window, broken_s
from tests.torture.rules import AT_REST

SHOWN = 5
"""How many violations of one kind are listed; the rest are counted."""
LATE_S = 8.0
"""The bound on lateness outside fault windows. A failpoint lets a thread that holds a task's row sleep for up to 4 s,
and a role that died takes seconds to start on a busy machine."""
AGREED_AFTER_S = 6.0
"""Every change older than this has reached Redis: `RedisSync` compares rows older than 2 s, every second."""

HISTORY = {question.name: question.sql for question in OF_HISTORY}
ROSTER = {question.name: question.sql for question in OF_ROSTER}

Conn = psycopg.Connection[Any]


@dataclass(frozen=True)
class Violation:
    promise: str
    detail: str


@dataclass(frozen=True)
class Evidence:
    answer_log: AnswerLog = field(default_factory=AnswerLog)
    windows: Sequence[Window] = ()
    silent: Sequence[Window] = ()
    """When a process of a role died, or when one of its threads was paused at a failpoint."""


def check_always(conn: Conn) -> list[Violation]:
    """Promises that hold at any moment. The connection must read one snapshot."""
    return [*ask(conn, ANY_MOMENT), *ask(conn, ROSTER)]


def check_ended(conn: Conn, client: Any) -> list[Violation]:
    """Promises that hold when every task has ended."""
    return [*check_always(conn), *ask(conn, HISTORY), *ask(conn, AT_REST), *check_redis_is_empty(client)]


def check_at_rest(conn: Conn, client: Any, evidence: Evidence) -> list[Violation]:
    return [
        *check_ended(conn, client),
        *check_answers(conn, evidence.answer_log),
        *check_lateness(conn, evidence.windows),
        *check_sent_once(conn, [*evidence.windows, *evidence.silent]),
    ]


def ask(conn: Conn, questions: Mapping[str, str]) -> list[Violation]:
    found: list[Violation] = []
    for promise, question in questions.items():
        found += some(promise, [str(row) for row in _rows(conn, question, WHOLE_HISTORY.values)])
    return found


def _rows(conn: Conn, question: str, values: Mapping[str, Any]) -> list[Any]:
    """The product names its parameters as SQLAlchemy does."""
    statement = str(text(question).compile(dialect=PGDialect_psycopg()))
    return conn.execute(statement.encode(), values).fetchall()


def some(promise: str, details: Sequence[str]) -> list[Violation]:
    shown = [Violation(promise, detail) for detail in details[:SHOWN]]
    left = len(details) - len(shown)
    return [*shown, Violation(promise, f"and {left} more")] if left > 0 else shown


# ---- answers to people ----

# For each deed that was answered with 200, the offer states or task statuses that are allowed ever after. A
# coordinator may assign the task to the same student later, which makes any offer ACCEPTED.
LASTING_DEEDS = {
    "accept": ("state", {"ACCEPTED", "RELEASED"}),
    "reject": ("state", {"REJECTED", "ACCEPTED", "RELEASED"}),
    "withdraw": ("state", {"RELEASED", "ACCEPTED"}),
    "assign": ("state", {"ACCEPTED", "RELEASED"}),
    "complete": ("status", {"COMPLETED"}),
    "cancel": ("status", {"CANCELLED"}),
}


def check_answers(conn: Conn, answer_log: AnswerLog) -> list[Violation]:
    statuses = {str(row[0]): row[1] for row in conn.execute("SELECT id, status FROM tasks")}
    states = {(str(row[0]), row[1]): row[2] for row in conn.execute("SELECT task_id, student_id, state FROM offers")}
    lost = sorted(answer_log.created - statuses.keys())
    twice = sorted(f"{key}: {sorted(ids)}" for key, ids in answer_log.by_key.items() if len(ids) > 1)
    found = some("a task that was answered with 201 and does not exist", lost)
    found += some("two tasks for one Idempotency-Key", twice)
    for deed, (column, allowed) in LASTING_DEEDS.items():
        for task_id, student_id in sorted(answer_log.confirmed.get(deed, ())):
            now = statuses.get(task_id) if column == "status" else states.get((task_id, student_id))
            if now not in allowed:
                found.append(Violation(f"{deed} was answered with 200 and did not last", f"{task_id} {now}"))
    return found + some("an answer that the API must not give", answer_log.wrong)


# ---- time ----


def check_lateness(conn: Conn, windows: Sequence[Window]) -> list[Violation]:
    """Offers closed later after their deadline than the bound, pushes shown after it, and tasks whose `next_step_at`
    passed long ago. Time inside fault windows is not counted."""
    late = """
    SELECT id, extract(epoch FROM deadline), extract(epoch FROM coalesce(closed_at, clock_timestamp())) FROM offers
    WHERE state IN ('PENDING', 'EXPIRED', 'WITHDRAWN') AND coalesce(closed_at, clock_timestamp()) > deadline"""
    shown = """
    SELECT p.id, extract(epoch FROM o.deadline), extract(epoch FROM p.shown_at) FROM recorded_pushes p
    JOIN offers o ON o.student_id = p.user_id AND o.task_id = (p.data ->> 'taskId')::uuid
    WHERE p.data ->> 'type' = 'OFFER' AND p.shown_at > o.deadline"""
    waiting = """
    SELECT id, extract(epoch FROM next_step_at), extract(epoch FROM clock_timestamp()) FROM tasks
    WHERE next_step_at < clock_timestamp()"""
    return [
        *_late("an offer that was closed too long after its deadline", conn.execute(late), windows, LATE_S),
        *_late("an offer that was shown after its deadline", conn.execute(shown), windows, 1.5),
        *_late("next_step_at long in the past", conn.execute(waiting), windows, LATE_S),
    ]


PROMPT_S = 2.0
"""The bound on lateness while only clocks are wrong."""

OVER_LATE = """
SELECT id, closed_at - deadline FROM offers
WHERE deadline BETWEEN to_timestamp(%(since)s) AND to_timestamp(%(until)s - %(bound)s)
  AND state IN ('PENDING', 'EXPIRED', 'WITHDRAWN')
  AND coalesce(closed_at, clock_timestamp()) > deadline + make_interval(secs => %(bound)s)"""
OVER_EARLY = """
SELECT id, deadline - closed_at FROM offers
WHERE offered_at >= to_timestamp(%(since)s) AND state = 'EXPIRED' AND closed_at < deadline"""
NOT_PUSHED = """
SELECT o.id, o.state, n.status, n.finished_at - o.offered_at FROM offers o
JOIN notifications n ON n.task_id = o.task_id AND n.recipient_user_id = o.student_id
     AND n.metadata -> 'data' ->> 'type' = 'OFFER'
WHERE o.offered_at BETWEEN to_timestamp(%(since)s) AND to_timestamp(%(until)s - %(bound)s)
  AND least(o.closed_at, o.deadline) - o.offered_at > interval '1.5 s' AND n.status <> 'SENT'"""


def check_prompt(conn: Conn, since: float, until: float) -> list[Violation]:
    """Lateness, earliness and missing pushes in a phase in which only clocks were wrong."""
    values = {"since": since, "until": until, "bound": PROMPT_S}
    return [
        *some("late although only clocks are wrong", [str(row) for row in conn.execute(OVER_LATE, values)]),
        *some("early because clocks are wrong", [str(row) for row in conn.execute(OVER_EARLY, values)]),
        *some("not pushed although there was time", [str(row) for row in conn.execute(NOT_PUSHED, values)]),
    ]


def ran_out(conn: Conn, since: float, until: float) -> int:
    question = """
    SELECT count(*) FROM offers WHERE state = 'EXPIRED' AND deadline BETWEEN to_timestamp(%s) AND to_timestamp(%s)"""
    [[count]] = conn.execute(question, [since, until]).fetchall()
    return count


def _late(promise: str, rows: Iterable[Any], windows: Sequence[Window], bound_s: float) -> list[Violation]:
    details: list[str] = []
    for id_, due, done in rows:
        excused = broken_s(windows, float(due), float(done))
        if float(done) - float(due) - excused > bound_s:
            details.append(f"{id_}: {float(done) - float(due):.1f} s late, of which {excused:.1f} s excused")
    return some(promise, details)


def worst_lateness_s(conn: Conn, windows: Sequence[Window]) -> float:
    """The latest close of an offer that expired outside fault windows and their aftermath."""
    rows = conn.execute(
        "SELECT extract(epoch FROM deadline), extract(epoch FROM closed_at) FROM offers WHERE state = 'EXPIRED'"
    )
    undisturbed = [float(done) - float(due) for due, done in rows if broken_s(windows, float(due), float(done)) == 0]
    return max(undisturbed, default=0.0)


SENT_AGAIN = """
SELECT notification_id, device_id, extract(epoch FROM at), extract(epoch FROM before)
FROM (SELECT *, lag(at) OVER (PARTITION BY notification_id, device_id ORDER BY id) AS before FROM push_history) pushes
WHERE before IS NOT NULL
"""
PROVIDER_WINDOW_S = 2.0
"""A push is sent again if the process dies, or PostgreSQL is away, after the provider took it and before that is
recorded. A paused thread makes this time longer."""


def check_sent_once(conn: Conn, windows: Sequence[Window]) -> list[Violation]:
    excuses = [one for one in windows if one.kind.startswith(("postgres", "delivery", "everything"))]
    details = [
        f"{id_} to {device}: again after {float(at) - float(before):.1f} s"
        for id_, device, at, before in conn.execute(SENT_AGAIN)
        if broken_s(excuses, float(before), float(before) + PROVIDER_WINDOW_S) == 0
    ]
    return some("a push sent twice without a fault that explains it", details)


# ---- Redis ----


def check_redis_is_empty(client: Any) -> list[Violation]:
    left = [key for prefix in ("pending_assignment:*", "task_candidates:*") for key in client.scan_iter(prefix)]
    left += client.zrange(keys.DEADLINES, 0, -1)
    found = some("a Redis key of a task that has ended", sorted(left))
    if client.get(keys.SENTINEL) != "1":
        found.append(Violation("Redis is not marked as complete", str(client.get(keys.SENTINEL))))
    return found


def check_redis_agrees(conn: Conn, client: Any, patience_s: float = 20.0) -> list[Violation]:
    """Compares the open tasks. A difference counts only if it lasts, because a row may change during the comparison
    and a matcher may hold a deadline at this moment."""
    until = time.monotonic() + patience_s
    while True:
        found = _disagreements(conn, client)
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.5)


def _disagreements(conn: Conn, client: Any) -> list[Violation]:
    clockwork = RedisClockwork(client)
    before = _open_tasks(conn)
    held = clockwork.held([task.id for task in before])
    after = {(task.id, task.updated_at) for task in _open_tasks(conn)}
    still = {task.id: task for task in before if (task.id, task.updated_at) in after}
    details = [
        f"{task_id}: Redis has {held[task_id]}, PostgreSQL {still[task_id]}"
        for task_id in disagreements(list(still.values()), held)
    ]
    if not clockwork.is_complete():
        details.append("Redis is not complete")
    return some("Redis and PostgreSQL disagree about an open task", details)


def _open_tasks(conn: Conn) -> list[OpenTask]:
    return [OpenTask(*row) for row in _rows(conn, UNCHANGED, {"settle_s": AGREED_AFTER_S})]
