"""Workers that die, stop and go on, and the takeover of what they had claimed."""

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from app.db.database import Database
from app.delivery.channels.memory import MemoryChannel
from app.delivery.messages.claims import Claimed, claim
from app.delivery.messages.values import NotificationType
from app.delivery.role import FOLLOWERS
from app.delivery.sending.heartbeat import BEAT_S, DEAD_AFTER_S, LONGEST_GAP_S, STILL_AFTER_S, Heartbeat
from app.delivery.sending.sender import Sender
from app.foundation.clock import DatabaseClock
from tests.support.breakers import new_gate
from tests.support.delivery import add_user, post, row

LEASE_S = 30.0
PROMISED_S = 5.0


class Seconds:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def worker(db: Database, seconds: Seconds) -> Callable[[], Heartbeat]:
    def make() -> Heartbeat:
        heartbeat = Heartbeat(db, seconds)
        heartbeat.beat()
        return heartbeat

    return make


def claim_all(db: Database, heartbeat: Heartbeat) -> list[Claimed]:
    with db.transaction() as conn:
        worker_id = heartbeat.worker_id()
        return claim(conn, NotificationType.PUSH, 100, LEASE_S, followers=FOLLOWERS, worker_id=worker_id).taken


def pass_time(seconds: Seconds, how_long_s: float, *beating: Heartbeat) -> None:
    until = seconds.now + how_long_s
    while seconds.now < until:
        seconds.now += BEAT_S
        for heartbeat in beating:
            heartbeat.beat()


def test_what_a_dead_worker_held_is_claimed_within_the_promised_time(
    db: Database, seconds: Seconds, worker: Callable[[], Heartbeat]
) -> None:
    ids = post(db, [add_user(db, "phone")] * 3)
    dead, neighbour = worker(), worker()
    assert len(claim_all(db, dead)) == 3
    pass_time(seconds, DEAD_AFTER_S - BEAT_S, neighbour)
    assert claim_all(db, neighbour) == []
    pass_time(seconds, PROMISED_S - DEAD_AFTER_S, neighbour)
    again = claim_all(db, neighbour)
    assert [one.id for one in again] == ids
    assert [(one.attempt, one.failures) for one in again] == [(2, 0)] * 3


def test_worker_that_was_started_again_takes_over_from_its_predecessor(
    db: Database, seconds: Seconds, worker: Callable[[], Heartbeat]
) -> None:
    post(db, [add_user(db, "phone")])
    assert len(claim_all(db, worker())) == 1
    seconds.now += 1
    successor = worker()
    pass_time(seconds, PROMISED_S - 1, successor)
    assert len(claim_all(db, successor)) == 1


def test_worker_that_beats_keeps_what_it_claimed(
    db: Database, seconds: Seconds, worker: Callable[[], Heartbeat]
) -> None:
    post(db, [add_user(db, "phone")])
    first, second = worker(), worker()
    [held] = claim_all(db, first)
    pass_time(seconds, 20, first, second)
    assert first.holds(held)
    assert claim_all(db, second) == []


def test_stopped_worker_sends_nothing_late(db: Database, seconds: Seconds, worker: Callable[[], Heartbeat]) -> None:
    post(db, [add_user(db, "phone")])
    stopped, neighbour = worker(), worker()
    claimed = claim_all(db, stopped)
    channel = MemoryChannel()
    sender = Sender(channel, DatabaseClock(db.now), new_gate(), holds=stopped.holds)
    assert STILL_AFTER_S < DEAD_AFTER_S
    pass_time(seconds, DEAD_AFTER_S + BEAT_S, neighbour)
    [report] = sender.send(claimed)
    assert (channel.sent, report.tries) == ([], [])
    with capture_logs() as logs:
        stopped.beat()
    assert [line["event"] for line in logs] == ["delivery_worker_was_replaced"]
    assert not stopped.holds(claimed[0]), "it lives again, but its earlier claims are those of others"
    [anew] = claim_all(db, stopped)
    assert stopped.holds(anew)


def test_worker_that_was_stopped_itself_takes_over_from_nobody(
    db: Database, seconds: Seconds, worker: Callable[[], Heartbeat]
) -> None:
    """Nor does one whose database was away: nobody could count a beat."""
    post(db, [add_user(db, "phone")])
    first, second = worker(), worker()
    [held] = claim_all(db, first)
    second.beat()
    seconds.now += max(LONGEST_GAP_S, DEAD_AFTER_S) + 1
    second.beat()
    first.beat()
    assert first.holds(held)
    assert claim_all(db, second) == []


def test_of_two_neighbours_one_takes_over(db: Database, seconds: Seconds, worker: Callable[[], Heartbeat]) -> None:
    [id_] = post(db, [add_user(db, "phone")])
    dead, *neighbours = worker(), worker(), worker()
    claim_all(db, dead)
    with capture_logs() as logs:
        pass_time(seconds, DEAD_AFTER_S + BEAT_S, *neighbours)
    assert [line["event"] for line in logs] == ["delivery_worker_taken_over"]
    claim_all(db, neighbours[0])
    pass_time(seconds, DEAD_AFTER_S + BEAT_S, *neighbours)
    assert row(db, id_).worker_id == neighbours[0].worker_id()
    assert claim_all(db, neighbours[1]) == []


def test_worker_that_leaves_keeps_nobody_waiting(db: Database, worker: Callable[[], Heartbeat]) -> None:
    post(db, [add_user(db, "phone")])
    leaving, neighbour = worker(), worker()
    claim_all(db, leaving)
    leaving.leave()
    assert len(claim_all(db, neighbour)) == 1
