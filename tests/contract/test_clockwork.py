"""The contract of the clockwork, over Redis and over fakeredis, which tests without a server use."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import fakeredis
import pytest
import redis

from app.foundation.ids import uuid7
from app.redis_store.contract import Clockwork, Due, HeldKeys, ListChange, RedisUnavailable, TaskKeys, from_ms, to_ms
from app.redis_store.keys import DEADLINES
from app.redis_store.store import RedisClockwork, connect

TTL = timedelta(seconds=600)
HOUR_S = 3600


@pytest.fixture(params=["fakeredis", "redis"])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "fakeredis":
        made: Any = fakeredis.FakeRedis(decode_responses=True)
    else:
        made = redis.Redis.from_url(request.getfixturevalue("redis_url"), decode_responses=True)
    made.flushdb()
    yield made
    made.flushdb()
    made.close()


@pytest.fixture
def clockwork(client: Any) -> Clockwork:
    return RedisClockwork(client)


@pytest.fixture
def now() -> datetime:
    """In whole milliseconds, because Redis stores those."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def offer_keys(student_id: int, now: datetime, *, ids: list[int], task_id: UUID | None = None) -> TaskKeys:
    deadline = now + TTL
    return TaskKeys(task_id or uuid7(), student_id, deadline, deadline, ListChange.REPLACE, ids)


def student_and_due_time(client: Any, task_id: UUID) -> tuple[int | None, datetime | None]:
    """The student of the pending key, and the time in the deadlines."""
    student = client.get(f"pending_assignment:{task_id}")
    score = client.zscore(DEADLINES, str(task_id))
    return int(student) if student else None, None if score is None else from_ms(score)


def candidates(client: Any, task_id: UUID) -> list[int]:
    return [int(item) for item in client.lrange(f"task_candidates:{task_id}", 0, -1)]


def test_offer_is_a_list_a_pending_key_and_a_deadline(client: Any, clockwork: Clockwork, now: datetime):
    keys = offer_keys(3, now, ids=[1, 5, 2])
    clockwork.apply([keys], now)
    assert candidates(client, keys.task_id) == [1, 5, 2]
    assert 0 < client.ttl(f"task_candidates:{keys.task_id}") <= HOUR_S
    assert client.get(f"pending_assignment:{keys.task_id}") == "3"
    assert 595_000 < client.pttl(f"pending_assignment:{keys.task_id}") <= 600_001
    assert client.zscore("offer_deadlines", str(keys.task_id)) == (now + TTL).timestamp() * 1000
    assert sorted(client.keys("*")) == sorted(
        [f"task_candidates:{keys.task_id}", f"pending_assignment:{keys.task_id}", "offer_deadlines"]
    )


def test_a_check_sees_all_keys_of_a_task(clockwork: Clockwork, now: datetime):
    full, bare, other = offer_keys(3, now, ids=[1, 5, 2]), TaskKeys(uuid7(), next_step_at=now), uuid7()
    clockwork.apply([full, bare], now)
    assert clockwork.held([full.task_id, bare.task_id, other]) == {
        full.task_id: HeldKeys(3, to_ms(now + TTL), [1, 5, 2]),
        bare.task_id: HeldKeys(None, to_ms(now), []),
        other: HeldKeys(None, None, []),
    }
    assert clockwork.held([]) == {}


def test_a_check_finds_the_tasks_that_have_any_key(client: Any, clockwork: Clockwork, now: datetime):
    """Of members and keys that other programs added, none is a task."""
    listed, asking, due = uuid7(), uuid7(), [uuid7() for _ in range(1200)]
    assert list(clockwork.task_ids()) == []
    client.rpush(f"task_candidates:{listed}", "1")
    client.set(f"pending_assignment:{asking}", "1")
    client.set("pending_assignment:somebody", "1")
    client.zadd("offer_deadlines", {str(task_id): 1 for task_id in due} | {"nonsense": 1})
    portions = list(clockwork.task_ids())
    assert set().union(*portions) == {listed, asking, *due}
    assert max(len(portion) for portion in portions) <= 500


def test_pending_key_does_not_expire_before_the_offer(client: Any, clockwork: Clockwork, now: datetime):
    keys = TaskKeys(uuid7(), 3, now + timedelta(microseconds=1_500_900), now + timedelta(microseconds=1_500_900))
    clockwork.apply([keys], now)
    assert client.pttl(f"pending_assignment:{keys.task_id}") > 1300
    assert client.zscore("offer_deadlines", str(keys.task_id)) == (now.timestamp() * 1000) // 1 + 1501


def test_only_used_candidates_leave_the_list(client: Any, clockwork: Clockwork, now: datetime):
    keys = offer_keys(3, now, ids=[1, 5, 2, 4])
    clockwork.apply([keys], now)
    clockwork.apply([TaskKeys(keys.task_id, 2, now + TTL, now + TTL, ListChange.KEEP, [5, 2, 99])], now)
    assert candidates(client, keys.task_id) == [1, 4]
    assert client.get(f"pending_assignment:{keys.task_id}") == "2"


def test_new_list_replaces_the_old_one(client: Any, clockwork: Clockwork, now: datetime):
    keys = offer_keys(3, now, ids=[1, 5])
    clockwork.apply([keys], now)
    clockwork.apply([offer_keys(7, now, ids=[9, 8], task_id=keys.task_id)], now)
    assert candidates(client, keys.task_id) == [9, 8]
    clockwork.apply([offer_keys(8, now, ids=[], task_id=keys.task_id)], now)
    assert client.exists(f"task_candidates:{keys.task_id}") == 0


def test_task_without_an_offer_keeps_its_list_and_its_due_time(client: Any, clockwork: Clockwork, now: datetime):
    keys = offer_keys(3, now, ids=[1, 5])
    clockwork.apply([keys], now)
    clockwork.apply([TaskKeys(keys.task_id, next_step_at=now + TTL)], now)
    assert candidates(client, keys.task_id) == [1, 5]
    assert student_and_due_time(client, keys.task_id) == (None, now + TTL)


def test_ended_task_leaves_no_key(client: Any, clockwork: Clockwork, now: datetime):
    keys = offer_keys(3, now, ids=[1, 5])
    clockwork.apply([keys], now)
    clockwork.apply([TaskKeys(keys.task_id, list_change=ListChange.DROP)], now)
    assert client.keys("*") == []


def test_expired_offer_has_no_pending_key(client: Any, clockwork: Clockwork, now: datetime):
    keys = TaskKeys(uuid7(), 3, now - timedelta(seconds=1), now - timedelta(seconds=1))
    clockwork.apply([keys], now)
    assert student_and_due_time(client, keys.task_id) == (None, now - timedelta(seconds=1))


def test_many_tasks_are_written_and_read_at_once(client: Any, clockwork: Clockwork, now: datetime):
    several = [offer_keys(number, now, ids=[number * 10, number * 10 + 1]) for number in range(1, 300)]
    clockwork.apply(several, now)
    ids = [keys.task_id for keys in several]
    unknown = uuid7()
    lists = clockwork.peek([*ids, unknown], 1)
    assert lists == {keys.task_id: [keys.ids[0]] for keys in several} | {unknown: []}
    assert [student_and_due_time(client, keys.task_id) for keys in several] == [
        (keys.student_id, now + TTL) for keys in several
    ]


def test_redis_that_has_forgotten_the_script_gets_it_again(client: Any, clockwork: Clockwork, now: datetime):
    clockwork.apply([offer_keys(1, now, ids=[1])], now)
    client.script_flush()
    several = [offer_keys(number, now, ids=[number]) for number in (2, 3)]
    clockwork.apply(several, now)
    assert [student_and_due_time(client, keys.task_id) for keys in several] == [(2, now + TTL), (3, now + TTL)]


def test_list_of_the_greatest_length_is_stored(client: Any, clockwork: Clockwork, now: datetime):
    keys = offer_keys(0, now, ids=list(range(1, 1001)))
    clockwork.apply([keys], now)
    assert candidates(client, keys.task_id) == keys.ids


def test_empty_calls_do_nothing(clockwork: Clockwork, now: datetime):
    clockwork.apply([], now)
    assert clockwork.peek([], 5) == clockwork.versions([]) == {}


def test_due_tasks_are_claimed_once_and_the_oldest_first(clockwork: Clockwork, now: datetime):
    oldest, later, ahead = (TaskKeys(uuid7(), next_step_at=now + timedelta(seconds=s)) for s in (-9, -1, 60))
    clockwork.apply([ahead, later, oldest], now)
    assert clockwork.claim_due(now, 10) == Due([oldest.task_id, later.task_id], now + timedelta(seconds=1))
    assert clockwork.claim_due(now, 10) == Due([], now + timedelta(seconds=1))


def test_claimed_task_that_was_not_settled_is_due_again(clockwork: Clockwork, now: datetime):
    keys = TaskKeys(uuid7(), next_step_at=now)
    clockwork.apply([keys], now)
    clockwork.claim_due(now, 10)
    assert clockwork.claim_due(now + timedelta(milliseconds=999), 10).task_ids == []
    assert clockwork.claim_due(now + timedelta(seconds=1), 10).task_ids == [keys.task_id]


def test_scheduled_tasks_are_found(clockwork: Clockwork, now: datetime):
    due, claimed, later = (TaskKeys(uuid7(), next_step_at=now - timedelta(seconds=n)) for n in (1, 2, -5))
    clockwork.apply([due, claimed, later], now)
    assert clockwork.claim_due(now, 1).task_ids == [claimed.task_id]
    known = [keys.task_id for keys in (due, claimed, later)]
    assert clockwork.scheduled([*known, uuid7()], now) == {due.task_id, claimed.task_id}
    assert clockwork.scheduled([], now) == set()


def test_claim_returns_at_most_the_requested_number(clockwork: Clockwork, now: datetime):
    several = [TaskKeys(uuid7(), next_step_at=now - timedelta(seconds=10 - number)) for number in range(5)]
    clockwork.apply(several, now)
    due = clockwork.claim_due(now, 2)
    assert due.task_ids == [several[0].task_id, several[1].task_id]
    assert due.next_at == several[2].next_step_at


def test_task_is_due_at_its_very_millisecond(clockwork: Clockwork, now: datetime):
    keys = TaskKeys(uuid7(), next_step_at=now + timedelta(milliseconds=5))
    clockwork.apply([keys], now)
    assert clockwork.claim_due(now + timedelta(milliseconds=4), 10).task_ids == []
    assert clockwork.claim_due(now + timedelta(milliseconds=5), 10).task_ids == [keys.task_id]


def test_claim_returns_the_first_candidates_of_each_list(clockwork: Clockwork, now: datetime):
    many, none = offer_keys(1, now, ids=[5, 6, 7]), TaskKeys(uuid7(), next_step_at=now)
    clockwork.apply([many, none], now)
    due = clockwork.claim_due(now + TTL, 10, candidates=2)
    assert due.lists == {many.task_id: [5, 6], none.task_id: []}
    assert clockwork.claim_due(now + 2 * TTL, 10).lists == {}


def test_pending_key_that_has_not_expired_lasts_as_long_as_the_claim(client: Any, clockwork: Clockwork, now: datetime):
    """Otherwise its event would come while the task is settled, and bring it back."""
    almost, long = (TaskKeys(uuid7(), 3, now + lasts, now) for lasts in (timedelta(milliseconds=200), TTL))
    clockwork.apply([almost, long], now)
    assert len(clockwork.claim_due(now, 10).task_ids) == 2
    claim_ends_ms = to_ms(now) + 1000
    assert client.pexpiretime(f"pending_assignment:{almost.task_id}") == claim_ends_ms
    assert client.pexpiretime(f"pending_assignment:{long.task_id}") > claim_ends_ms, "a claim does not shorten a key"


def test_without_deadlines_no_task_is_due(clockwork: Clockwork, now: datetime):
    assert clockwork.claim_due(now, 10) == Due([], None)


def test_concurrent_claims_get_different_tasks(client: Any, clockwork: Clockwork, now: datetime):
    several = [TaskKeys(uuid7(), next_step_at=now) for _ in range(200)]
    clockwork.apply(several, now)
    claimed: list[UUID] = []

    def claim() -> None:
        own = RedisClockwork(client)
        while ids := own.claim_due(now, 7).task_ids:
            claimed.extend(ids)

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == sorted(keys.task_id for keys in several)


def test_lost_list_is_filled_and_a_newer_one_is_kept(client: Any, clockwork: Clockwork, now: datetime):
    task_id = uuid7()
    clockwork.fill_list(task_id, [4, 2], now)
    clockwork.fill_list(task_id, [9], now)
    assert candidates(client, task_id) == [4, 2]
    assert 0 < client.ttl(f"task_candidates:{task_id}") <= HOUR_S


def test_empty_redis_is_incomplete_until_the_rebuild(client: Any, clockwork: Clockwork):
    assert not clockwork.is_complete()
    token = clockwork.begin_rebuild()
    assert not clockwork.is_complete()
    clockwork.finish_rebuild(token)
    assert clockwork.is_complete()
    client.flushdb()
    assert not clockwork.is_complete()


def test_overtaken_rebuild_does_not_count(client: Any, clockwork: Clockwork):
    first = clockwork.begin_rebuild()
    second = clockwork.begin_rebuild()
    clockwork.finish_rebuild(first)
    assert not clockwork.is_complete()
    client.flushdb()
    clockwork.finish_rebuild(second)
    assert not clockwork.is_complete(), "Redis was emptied during the rebuild"


def test_concurrent_writes_are_complete(client: Any, clockwork: Clockwork, now: datetime):
    clockwork.finish_rebuild(clockwork.begin_rebuild())
    barrier = threading.Barrier(8)

    def tell() -> None:
        barrier.wait(timeout=10)
        for number in range(1, 30):
            clockwork.apply([offer_keys(number, now, ids=[1])], now)

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clockwork.is_complete()
    assert client.zcard("offer_deadlines") == 8 * 29


@pytest.fixture
def breakable(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Clockwork]:
    server = fakeredis.FakeServer()
    return server, RedisClockwork(fakeredis.FakeRedis(server=server, decode_responses=True))


def test_older_version_does_not_overwrite_a_newer_one(client: Any, clockwork: Clockwork, now: datetime):
    """A process that was stopped between its commit and its hint may continue after newer transitions."""
    task_id = uuid7()
    newer, older = now + timedelta(seconds=7), now
    clockwork.apply([replace(offer_keys(9, now, task_id=task_id, ids=[4]), version=newer)], now)
    clockwork.apply([replace(offer_keys(3, now, task_id=task_id, ids=[9, 4]), version=older)], now)
    assert student_and_due_time(client, task_id)[0] == 9
    assert clockwork.versions([task_id]) == {task_id: newer}
    assert clockwork.peek([task_id], 10)[task_id] == [4]
    clockwork.apply([TaskKeys(task_id, list_change=ListChange.DROP, version=newer + timedelta(seconds=1))], now)
    clockwork.fill_list(task_id, [4], newer)
    clockwork.apply([replace(offer_keys(9, now, task_id=task_id, ids=[4]), version=newer)], now)
    assert student_and_due_time(client, task_id) == (None, None)
    assert clockwork.peek([task_id], 10)[task_id] == []


def test_unknown_task_has_the_oldest_version(clockwork: Clockwork, now: datetime):
    assert clockwork.versions([uuid7()]).popitem()[1] < now - timedelta(days=365)


def test_invalid_members_of_the_deadlines_are_removed(client: Any, clockwork: Clockwork, now: datetime):
    client.zadd(DEADLINES, {"not a task": 1, "\u00ff": 2})
    due = TaskKeys(uuid7(), next_step_at=now - timedelta(seconds=1))
    clockwork.apply([due], now)
    assert clockwork.claim_due(now, 10).task_ids == [due.task_id]
    assert client.zcard(DEADLINES) == 1


def test_every_call_fails_while_redis_is_down(breakable: tuple[Any, Clockwork], now: datetime):
    server, clockwork = breakable
    server.connected = False
    keys = offer_keys(3, now, ids=[1])
    for call in (
        lambda: clockwork.apply([keys], now),
        lambda: clockwork.peek([keys.task_id], 1),
        lambda: clockwork.claim_due(now, 1),
        lambda: clockwork.versions([keys.task_id]),
        lambda: clockwork.fill_list(keys.task_id, [1], now),
        clockwork.is_complete,
        clockwork.begin_rebuild,
        lambda: clockwork.finish_rebuild("token"),
        clockwork.ping,
    ):
        with pytest.raises(RedisUnavailable):
            call()


def test_redis_that_missed_a_write_is_incomplete_for_every_process(now: datetime):
    server = fakeredis.FakeServer()
    clockwork, other = (
        RedisClockwork(fakeredis.FakeRedis(server=server, decode_responses=True), down_pause_s=0) for _ in range(2)
    )
    clockwork.finish_rebuild(clockwork.begin_rebuild())
    assert other.is_complete()
    server.connected = False
    with pytest.raises(RedisUnavailable):
        clockwork.apply([offer_keys(3, now, ids=[1])], now)
    server.connected = True
    assert not clockwork.is_complete()
    clockwork.apply([offer_keys(3, now, ids=[1])], now)
    assert not other.is_complete(), "the next write says that one is missing"


def test_closed_port_counts_as_redis_down(now: datetime):
    clockwork = connect("redis://127.0.0.1:1/0")
    with pytest.raises(RedisUnavailable):
        clockwork.ping()
    clockwork.close()
