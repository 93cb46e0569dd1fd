"""Conductors: several in parallel, one killed between any two statements, and an action that cannot be advanced."""

import threading
from collections import Counter

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import text

from app.api.services import Services
from app.db.database import Database
from app.delivery.actions.conductor import Conductor
from app.delivery.messages.values import Outcome
from app.ops.submission_counter import SubmissionCounter
from app.users.models import Caller, Role
from tests.support import mishaps
from tests.support.actions import RULES, SOMEBODY_WAITS, ActionHarness, S
from tests.support.depth import passages
from tests.support.matching import at_once, eventually

PUSH = {"channel_type": "push"}
PLACES = (
    "sql.statement",
    "sql.commit",
    "sql.committed",
    "conductor.claimed",
    "conductor.written",
    "conductor.committed",
)
MOST = 40
WHAT = ("conduct", Caller(0, Role.ADMIN, "", "tr", None), None, "")


@pytest.fixture
def harness(db: Database) -> ActionHarness:
    return ActionHarness(db)


def send_all(harness: ActionHarness) -> None:
    claimed = harness.claim("push")
    if claimed:
        harness.record(claimed, S.SENT, Outcome.SENT, None)


def per_step(harness: ActionHarness) -> Counter[tuple[object, int]]:
    rows = harness.sql("SELECT action_id, step_order, count(*) AS many FROM notifications GROUP BY 1, 2")
    return Counter({(row.action_id, row.step_order): row.many for row in rows})


def nothing_is_due(harness: ActionHarness) -> bool:
    harness.settle()
    return not harness.sql("SELECT FROM actions WHERE due_at <= clock_timestamp()")


@pytest.mark.parametrize("place", PLACES)
def test_killed_conductor_neither_loses_nor_repeats_a_step(services: Services, place: str) -> None:
    harness = ActionHarness(services.db)
    plan, person = harness.plan(PUSH, PUSH | {"template_key": "missing"}, PUSH), harness.user()
    for passage in passages(MOST):
        ids = [harness.ask(plan, person) for _ in range(3)]
        send_all(harness)
        died = mishaps.Step(services.settings, f"{place}=kill@{passage}", *WHAT).end().died
        eventually(
            lambda: nothing_is_due(harness), "the locks of the killed conductor end, and the next one takes over"
        )
        for id_ in ids:
            assert harness.states(id_) == ["SENT", "FAILED", "RUNNING"]
            assert [per_step(harness)[id_, order] for order in (1, 2, 3)] == [1, 0, 1]
            assert harness.dead_letters(id_) == [("UNKNOWN_TEMPLATE", "OPEN")]
        send_all(harness)
        harness.settle()
        assert {harness.status(id_) for id_ in ids} == {"FAILED"}
        if not died:
            assert passage > 1, f"a conductor never passes {place}"
            return
    raise AssertionError(f"{MOST} passages did not reach the end of a run")


def test_parallel_conductors_run_each_step_once(harness: ActionHarness) -> None:
    plan, person = harness.plan(PUSH, PUSH), harness.user()
    ids = [harness.ask(plan, person) for _ in range(60)]
    send_all(harness)
    conductors = [Conductor(harness.db, RULES, batch=7) for _ in range(4)]

    def work(conductor: Conductor) -> int:
        done = 0
        while some := conductor.run_once():
            done += some
        return done

    assert sum(at_once(*[lambda one=one: work(one) for one in conductors])) == 60
    assert all(harness.states(id_) == ["SENT", "RUNNING"] for id_ in ids)
    assert set(per_step(harness).values()) == {1}


def test_action_is_due_again_if_a_notification_ends_during_the_decision(harness: ActionHarness) -> None:
    """The conductor reads the notification before its end is committed. The record then waits for the action's row."""
    id_ = harness.ask(harness.plan(PUSH, PUSH), harness.user())
    claimed = harness.claim("push")
    harness.sql("UPDATE actions SET due_at = clock_timestamp()")
    with harness.db.transaction() as conductor:
        conductor.execute(text("SELECT FROM actions FOR NO KEY UPDATE"))
        recorder = threading.Thread(target=harness.record, args=(claimed, S.SENT, Outcome.SENT, None))
        recorder.start()
        eventually(lambda: harness.sql(SOMEBODY_WAITS), "the recorder waits for the action")
        conductor.execute(text("UPDATE actions SET due_at = NULL"))
    recorder.join(timeout=10)
    assert harness.action(id_).due_at is not None
    harness.settle()
    assert harness.states(id_) == ["SENT", "RUNNING"]


def test_broken_action_does_not_delay_the_others(harness: ActionHarness) -> None:
    plan, person = harness.plan(PUSH, PUSH), harness.user()
    bad, good = harness.ask(plan, person), harness.ask(plan, person)
    send_all(harness)
    harness.sql("UPDATE actions SET steps = steps #- '{1,on_failure}' WHERE id = :id", id=bad)
    harness.settle()
    assert harness.states(good) == ["SENT", "RUNNING"]
    assert harness.states(bad) == ["RUNNING", "WAITING"]
    assert harness.action(bad).due_at > harness.db.now(), "the broken action is not postponed"


@pytest.mark.parametrize(("poll_s", "rings"), [(30.0, True), (0.05, False)], ids=["bell", "poll"])
def test_conductor_wakes_by_bell_or_poll(harness: ActionHarness, poll_s: float, rings: bool) -> None:
    stop = threading.Event()
    id_ = harness.ask(harness.plan(PUSH), harness.user())
    conductor = Conductor(harness.db, RULES, poll_s=poll_s)
    thread = threading.Thread(target=conductor.run, args=(stop,))
    thread.start()
    send_all(harness)
    if rings:
        conductor.bell.ring()
    eventually(lambda: harness.status(id_) == "DONE", "the conductor finishes the plan")
    stop.set()
    conductor.bell.ring()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_messages_of_later_steps_are_counted_where_they_are_submitted(harness: ActionHarness) -> None:
    registry = CollectorRegistry()
    SubmissionCounter(registry).watch(harness.db)
    harness.ask(harness.plan(PUSH, PUSH), harness.user())
    harness.deliver()
    harness.deliver()
    assert registry.get_sample_value("yaninda_delivery_produced_total", {"type": "PUSH"}) == 2
