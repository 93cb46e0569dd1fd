"""Many threads request, advance, cancel and record actions at the same time. No transaction deadlocks, every action
ends, and no address gets the notification of a step twice."""

import random
import threading
from uuid import UUID

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.actions import service
from app.delivery.actions.conductor import Conductor
from app.delivery.actions.requests import NewAction
from app.delivery.messages.values import Outcome
from app.foundation.ids import uuid7
from tests.support.actions import RULES, ActionHarness, S
from tests.support.matching import at_once, eventually

ENDS = [
    (S.SENT, Outcome.SENT, None),
    (S.DEAD, Outcome.PERMANENT, "HTTP_400"),
    (S.DEAD, Outcome.UNKNOWN, "TIMEOUT"),
]
STEP = {"fallback": ["sms"], "within_s": 1, "on_failure": "CONTINUE"}
ROUNDS, BATCH = 12, 8


def deadlocks(db: Database) -> int:
    # A process of PostgreSQL may report its count only when it ends.
    db.engine.dispose()
    with db.transaction() as conn:
        statement = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        return conn.execute(text(statement)).scalar_one()


@pytest.mark.parametrize("seed", [1, 2])
def test_concurrent_work_on_actions_does_not_deadlock(db: Database, seed: int) -> None:
    harness = ActionHarness(db)
    before = deadlocks(db)
    plan, people = harness.plan(STEP, STEP), [harness.user() for _ in range(4)]
    tasks = [uuid7() for _ in range(6)]
    stop = threading.Event()

    def ask(number: int) -> list[UUID]:
        rng = random.Random(seed * 100 + number)
        ids: list[UUID] = []
        for turn in range(ROUNDS):
            new = [
                NewAction(
                    plan,
                    rng.choice(people),
                    data={"type": "OFFER"},
                    task_id=rng.choice(tasks),
                    evaluation_key=f"{turn}-{index}" if index % 2 else None,
                )
                for index in rng.sample(range(BATCH), BATCH)
            ]
            ids += harness.request(*new)
            if turn % 3 == 0:
                with db.transaction() as conn:
                    service.cancel_actions(conn, [(rng.choice(tasks), person) for person in people], "OFFER")
        return ids

    def conduct() -> None:
        conductor = Conductor(db, RULES, batch=5)
        while not stop.is_set():
            conductor.run_once()
            pause(stop)

    def send(number: int) -> None:
        rng = random.Random(seed * 1000 + number)
        while not stop.is_set():
            claimed = harness.claim(rng.choice(["push", "sms"]))
            rng.shuffle(claimed)
            for start in range(0, len(claimed), 7):
                harness.record(claimed[start : start + 7], *rng.choice(ENDS))
            pause(stop)

    helpers = [threading.Thread(target=conduct) for _ in range(2)]
    helpers += [threading.Thread(target=send, args=(number,)) for number in range(3)]
    for helper in helpers:
        helper.start()
    try:
        asked = at_once(*[lambda number=number: ask(number) for number in range(3)])
        eventually(lambda: not harness.sql("SELECT FROM actions WHERE status = 'RUNNING'"), "every action ends", 30)
    finally:
        stop.set()
        for helper in helpers:
            helper.join(timeout=20)
    assert not any(helper.is_alive() for helper in helpers)
    assert len({id_ for ids in asked for id_ in ids}) == 3 * ROUNDS * BATCH // 2 + ROUNDS * BATCH // 2
    twice = "SELECT action_id, step_order, recipient, notification_type FROM notifications GROUP BY 1, 2, 3, 4"
    assert harness.sql(f"{twice} HAVING count(*) > 1") == []
    assert harness.sql('SELECT FROM actions WHERE steps @> \'[{"state": "RUNNING"}]\'') == []
    assert deadlocks(db) == before


def pause(stop: threading.Event) -> None:
    """Lets the other threads run for a moment."""
    stop.wait(0.005)
