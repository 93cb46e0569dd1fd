"""Everything is down for two hours while many offers fall due; then everything is up again."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

from tests.torture.checker import Conn, Violation, some
from tests.torture.crew import Crew
from tests.torture.ledger import Ledger
from tests.torture.people import Place
from tests.torture.phone import Phone

DOWN_S = 7200
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Downtime:
    overdue: int
    caught_up_s: float
    """From the moment the roles were told to start until the last of these offers was closed."""
    per_s: float
    ahead: int
    """So many were dealt with long before their turn, because Redis told of them by itself."""
    displaced: int
    """By how many places the one that came last after its turn was late, not counting those."""
    at_once: int
    """The most that one transaction closed."""
    violations: Sequence[Violation]


# As if all of it had been written so much earlier.
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


def be_down(
    conn: Conn, crew: Crew, couples: Sequence[Place], ports: Sequence[int], ledger: Ledger, batch: int
) -> Downtime:
    """`couples` press while only the API is up, so that all their first offers are live when it goes down, too."""
    for member in crew.of("matcher", "delivery"):
        member.wanted = False
    crew.all_down()
    for member in crew.of("api"):
        member.wanted = True
    _wait_for(lambda: all(member.is_up() for member in crew.of("api")))
    tasks = _press_all(couples, ports, ledger)
    crew.all_down()
    for statement in AGE:
        conn.execute(statement, {"by": f"{DOWN_S} s"})
    told = conn.execute("SELECT clock_timestamp()").fetchone()
    assert told is not None
    began = time.monotonic()
    for member in crew.members:
        member.wanted, member.due_at = True, 0.0
    _wait_for(lambda: _still_live(conn, tasks) == 0)
    caught_up_s = time.monotonic() - began
    _wait_for(lambda: _still_open(conn, tasks) == 0)
    return judge(conn, tasks, caught_up_s, batch, len(crew.of("matcher")))


def _press_all(couples: Sequence[Place], ports: Sequence[int], ledger: Ledger) -> list[str]:
    over = threading.Event()

    def press(place: Place) -> str:
        task_id = Phone(place.elders[0], ports, ledger, Random(place.elders[0].id), over).press()
        assert task_id is not None, "nothing is broken, so a press is answered"
        return task_id

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(press, couples))


def _wait_for(what: Any) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        if time.monotonic() > until:
            raise TimeoutError("what was overdue was not caught up with in time")
        time.sleep(0.1)


def _count(conn: Conn, question: str, tasks: Sequence[str]) -> int:
    row = conn.execute(question, [list(tasks)]).fetchone()
    assert row is not None
    return row[0]


def _still_live(conn: Conn, tasks: Sequence[str]) -> int:
    return _count(conn, "SELECT count(*) FROM offers WHERE task_id = ANY(%s::uuid[]) AND state = 'PENDING'", tasks)


def _still_open(conn: Conn, tasks: Sequence[str]) -> int:
    question = "SELECT count(*) FROM tasks WHERE id = ANY(%s::uuid[]) AND status NOT IN ('TIMED_OUT', 'CANCELLED')"
    return _count(conn, question, tasks)


def judge(conn: Conn, tasks: Sequence[str], caught_up_s: float, batch: int, matchers: int) -> Downtime:
    """Each first offer is closed once, in turn, and with no more others than fit in a batch. Matchers take batches side
    by side, so an offer may be out of its turn by the two batches that each of them may have in hand. Redis fires the
    events of what it finds overdue in no order at all; who is dealt with earlier for that takes nothing from the
    others."""
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
    at_once, most = batch * matchers, together[0]
    odd = [str(row) for row in rows if (row[1], row[2], row[3], row[6]) != ("TIMED_OUT", 1, 1, 1)]
    closed = sorted(rows, key=lambda row: row[5])
    deadlines = [row[4] for row in closed]
    in_turn = [deadlines[place] for place, by in enumerate(_out_of_turn(deadlines)) if by >= -2 * at_once]
    displaced = max(_out_of_turn(in_turn), default=0)
    span_s = (closed[-1][5] - closed[0][5]).total_seconds() if closed else 0.0
    violations = some("an overdue offer that was not dealt with exactly once", odd)
    if displaced > 2 * at_once:
        violations.append(Violation("overdue offers out of their order", f"one by {displaced} places"))
    if most > batch:
        violations.append(Violation("more overdue offers at once than the bound", f"{most} in one transaction"))
    ahead = len(closed) - len(in_turn)
    return Downtime(len(rows), caught_up_s, len(rows) / max(span_s, 0.001), ahead, displaced, most, violations)


TOGETHER = """
SELECT coalesce(max(number), 0)
FROM (SELECT count(*) AS number FROM offers WHERE task_id = ANY(%s::uuid[]) AND state = 'EXPIRED' GROUP BY xmin) closed
"""


def _out_of_turn(deadlines: Sequence[datetime]) -> list[int]:
    """By how many places each is later than its turn; less than nothing where it is earlier."""
    turns = {place: turn for turn, place in enumerate(sorted(range(len(deadlines)), key=lambda one: deadlines[one]))}
    return [place - turns[place] for place in range(len(deadlines))]
