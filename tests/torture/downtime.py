"""Takes every role down for two hours while many offers fall due, then starts all of them again."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import LiteralString

from tests.torture.answers import AnswerLog
from tests.torture.checker import Conn, Violation, some
from tests.torture.people import Place
from tests.torture.phone import Phone
from tests.torture.roles import Roles

DOWN_S = 7200
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Downtime:
    overdue: int
    caught_up_s: float
    """From the start of the roles until the last of the overdue offers was closed."""
    per_s: float
    ahead: int
    """How many offers were handled long before their turn, because of an expired event from Redis."""
    displaced: int
    """The most places by which one of the other offers was handled after its turn."""
    at_once: int
    """The most offers that one transaction closed."""
    violations: Sequence[Violation]


# Move every time into the past, as if the rows had been written that much earlier.
AGE = (
    """
    UPDATE tasks SET created_at = created_at - %(by)s::interval, updated_at = updated_at - %(by)s::interval,
           search_until = search_until - %(by)s::interval, next_step_at = next_step_at - %(by)s::interval
    WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED')""",
    """
    UPDATE notifications SET created_at = created_at - %(by)s::interval, due_at = due_at - %(by)s::interval,
           expires_at = expires_at - %(by)s::interval
    WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING')""",
    """
    UPDATE actions SET created_at = created_at - %(by)s::interval, due_at = due_at - %(by)s::interval,
           expires_at = expires_at - %(by)s::interval
    WHERE status = 'RUNNING'""",
    """
    UPDATE offers SET offered_at = offered_at - %(by)s::interval, deadline = deadline - %(by)s::interval,
           created_at = created_at - %(by)s::interval
    WHERE state = 'PENDING'""",
)


def take_down(
    conn: Conn, roles: Roles, places: Sequence[Place], ports: Sequence[int], answer_log: AnswerLog, batch: int
) -> Downtime:
    """Elders press while only the API is up, so that all first offers are live when the API goes down, too."""
    for instance in roles.of("matcher", "delivery"):
        instance.wanted = False
    roles.all_down()
    for instance in roles.of("api"):
        instance.wanted = True
    _wait_for(lambda: all(instance.is_up() for instance in roles.of("api")))
    tasks = _press_all(places, ports, answer_log)
    roles.all_down()
    for statement in AGE:
        conn.execute(statement, {"by": f"{DOWN_S} s"})
    began = time.monotonic()
    for instance in roles.instances:
        instance.wanted, instance.due_at = True, 0.0
    _wait_for(lambda: _still_live(conn, tasks) == 0)
    caught_up_s = time.monotonic() - began
    _wait_for(lambda: _still_open(conn, tasks) == 0)
    return judge(conn, tasks, caught_up_s, batch, len(roles.of("matcher")))


def _press_all(places: Sequence[Place], ports: Sequence[int], answer_log: AnswerLog) -> list[str]:
    over = threading.Event()

    def press(place: Place) -> str:
        task_id = Phone(place.elders[0], ports, answer_log, Random(place.elders[0].id), over).press()
        assert task_id is not None, "without a fault, a press is answered"
        return task_id

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(press, places))


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("the overdue offers were not handled in time")
        time.sleep(0.1)


def _count(conn: Conn, question: LiteralString, tasks: Sequence[str]) -> int:
    row = conn.execute(question, [list(tasks)]).fetchone()
    assert row is not None
    return row[0]


def _still_live(conn: Conn, tasks: Sequence[str]) -> int:
    return _count(conn, "SELECT count(*) FROM offers WHERE task_id = ANY(%s::uuid[]) AND state = 'PENDING'", tasks)


def _still_open(conn: Conn, tasks: Sequence[str]) -> int:
    question = "SELECT count(*) FROM tasks WHERE id = ANY(%s::uuid[]) AND status NOT IN ('TIMED_OUT', 'CANCELLED')"
    return _count(conn, question, tasks)


def judge(conn: Conn, tasks: Sequence[str], caught_up_s: float, batch: int, matchers: int) -> Downtime:
    """Each first offer must be closed once, in the order of deadlines, and at most one batch in a transaction.

    Matchers handle batches in parallel, each up to two, so an offer may be displaced by that many places. On a busy
    machine one matcher may stand still while it holds a batch, and the others handle any number meanwhile: so many
    offers as all matchers but one can hold may be later. Redis fires expired events in no order; an offer handled early
    because of one does not delay the others and is not judged."""
    rows = conn.execute(
        """
        SELECT t.id, t.status, count(o.id) FILTER (WHERE o.state = 'EXPIRED'), count(o.id), min(o.deadline),
               min(o.closed_at),
               (SELECT count(DISTINCT coalesce(n.action_id, n.id)) FROM notifications n
                 WHERE n.task_id = t.id AND n.recipient_user_id = t.elder_id)
        FROM tasks t LEFT JOIN offers o ON o.task_id = t.id WHERE t.id = ANY(%s::uuid[]) GROUP BY t.id""",
        [list(tasks)],
    ).fetchall()
    together = conn.execute(TOGETHER, [list(tasks)]).fetchone()
    assert together is not None
    in_parallel, most = batch * matchers, together[0]
    not_once = [str(row) for row in rows if (row[1], row[2], row[3], row[6]) != ("TIMED_OUT", 1, 1, 1)]
    closed = sorted(rows, key=lambda row: row[5])
    deadlines = [row[4] for row in closed]
    in_turn = [deadlines[place] for place, by in enumerate(_places_late(deadlines)) if by >= -2 * in_parallel]
    places_late = _places_late(in_turn)
    span_s = (closed[-1][5] - closed[0][5]).total_seconds() if closed else 0.0
    violations = some("an overdue offer that was not handled exactly once", not_once)
    out_of_order = [places for places in places_late if places > 2 * in_parallel]
    if len(out_of_order) > batch * (matchers - 1):
        violations.append(Violation("overdue offers handled out of order", f"they were {out_of_order} places late"))
    if most > batch:
        violations.append(Violation("a batch of overdue offers above MATCHER_BATCH", f"{most} in one transaction"))
    ahead = len(closed) - len(in_turn)
    displaced = max(places_late, default=0)
    return Downtime(len(rows), caught_up_s, len(rows) / max(span_s, 0.001), ahead, displaced, most, violations)


TOGETHER = """
SELECT coalesce(max(number), 0)
FROM (SELECT count(*) AS number FROM offers WHERE task_id = ANY(%s::uuid[]) AND state = 'EXPIRED' GROUP BY xmin) closed
"""


def _places_late(deadlines: Sequence[datetime]) -> list[int]:
    """By how many places each offer was closed after its turn; negative if before."""
    turns = {place: turn for turn, place in enumerate(sorted(range(len(deadlines)), key=lambda one: deadlines[one]))}
    return [place - turns[place] for place in range(len(deadlines))]
