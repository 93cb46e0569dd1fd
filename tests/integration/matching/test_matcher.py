"""The matcher role inside the test process: several in parallel, with parts switched off, and with Redis lost.

Most offers last half a second. Tests wait for a condition, never for a fixed time.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import UUID

import pytest

from app.api.services import Services
from app.bootstrap.build_services import build_services
from app.bootstrap.matcher import build_matcher
from app.matching.contract import NewTask
from app.matching.role import Matcher
from app.redis_store.contract import to_ms
from app.settings.settings import Settings
from tests.support.matching import Gate, Neighbourhood, eventually

QUICK = {"reconcile_interval_s": 0.3}
LONG = {"offer_ttl_s": 600, "reconcile_interval_s": 0.2}
Start = Callable[..., Matcher]


@pytest.fixture
def environ() -> dict[str, Any]:
    return QUICK


@pytest.fixture
def offer_ttl_s() -> float:
    return 0.5


@pytest.fixture
def settings(settings: Settings, environ: dict[str, Any], offer_ttl_s: float) -> Settings:
    """In QUICK tests, offers are shorter than the whole seconds that the setting allows."""
    return settings.model_copy(update={"offer_ttl_s": offer_ttl_s}) if environ is QUICK else settings


@contextmanager
def running(services: Services, **changes: Any) -> Iterator[Matcher]:
    """Runs a matcher with its own connections, as if it had its own process."""
    own = build_services(services.settings.model_copy(update=changes), role="matcher", pool_size=4)
    matcher = build_matcher(own)
    matcher.start()
    try:
        yield matcher
    finally:
        matcher.stop()
        own.close()


@pytest.fixture
def start(services: Services) -> Iterator[Start]:
    with ExitStack() as matchers:
        yield lambda **changes: matchers.enter_context(running(services, **changes))


def ended(town: Neighbourhood, *tasks: UUID) -> Callable[[], bool]:
    return lambda: all(town.status(task_id) == "TIMED_OUT" for task_id in tasks)


def assert_all_students_were_asked_once(town: Neighbourhood, tasks: list[UUID], students: int) -> None:
    for task_id in tasks:
        assert len(town.asked_in_order(task_id)) == students
        assert len(town.told(kind="NOBODY_FOUND", task_id=task_id)) == 1
        assert town.keys(task_id).nothing
    assert len(town.told(kind="OFFER")) == students * len(tasks), "an offer has two notifications"


def lateness_s(town: Neighbourhood) -> list[float]:
    rows = town.all(
        "SELECT extract(epoch FROM closed_at - deadline)::float8 AS late_s FROM offers WHERE state = 'EXPIRED'"
    )
    return [row.late_s for row in rows]


@pytest.mark.parametrize("matchers", [1, 2, 3])
def test_parallel_matchers_make_no_offer_twice(town: Neighbourhood, start: Start, matchers: int) -> None:
    town.students(10, 20)
    spots = [town.spot_at(3000 * number, 90) for number in range(8)]
    for spot in spots[1:]:
        town.students(10, 20, at=spot)
    running = [start() for _ in range(matchers)]
    tasks = [town.press(town.elder(f"Elder{number}", spot)) for number, spot in enumerate(spots)]
    eventually(ended(town, *tasks), "all offers have expired")
    assert_all_students_were_asked_once(town, tasks, students=2)
    assert min(lateness_s(town)) >= 0, "an offer expired before its deadline"
    assert sum(found_by_sweep(matcher) for matcher in running) == 0, (
        "a sweep found a deadline that the ticker and the listener had missed"
    )


@pytest.mark.parametrize(
    ("off", "bound_s"),
    [
        ({}, 0.5),
        ({"matcher_listener": False}, 0.5),
        ({"matcher_ticker": False}, 1.5),
        ({"matcher_reconciler": False}, 0.5),
        ({"matcher_listener": False, "matcher_reconciler": False}, 0.5),
        ({"matcher_listener": False, "matcher_ticker": False}, 1.0),
        ({"matcher_ticker": False, "matcher_reconciler": False}, 3.0),
    ],
    ids=["all", "no listener", "no ticker", "no reconciler", "ticker alone", "reconciler alone", "event alone"],
)
def test_one_of_listener_ticker_and_reconciler_is_enough(
    town: Neighbourhood, start: Start, off: dict[str, Any], bound_s: float
) -> None:
    town.students(10, 20)
    matcher = start(**off)
    if "matcher_ticker" in off and "matcher_reconciler" in off:
        eventually(lambda: subscribers(town) > 0, "the listener follows the events")
    task_id = town.press()
    eventually(ended(town, task_id), "both offers have expired")
    assert_all_students_were_asked_once(town, [task_id], students=2)
    assert 0 <= min(lateness_s(town)) <= max(lateness_s(town)) < bound_s
    assert matcher.due.wait_until_idle(5), "a task that has ended is still queued"


def found_by_sweep(matcher: Matcher) -> float:
    return matcher.metrics.registry.get_sample_value("yaninda_due_found_by_sweep_total") or 0.0


def subscribers(town: Neighbourhood) -> int:
    channel = f"__keyevent@{town.redis.connection_pool.connection_kwargs['db']}__:expired"
    return town.redis.pubsub_numsub(channel)[0][1]


@pytest.mark.parametrize("offer_ttl_s", [1])
def test_student_who_accepts_in_time_keeps_the_task(town: Neighbourhood, start: Start) -> None:
    ali, _ = town.students(10, 20)
    other = town.press(town.elder("Hatice Demir", town.spot_at(5000)))
    start()
    task_id = town.press()
    town.matching.accept(ali, task_id)
    watched = town.press(town.elder("Emine Kurt"))
    eventually(ended(town, watched, other), "the offer to the second student has expired")
    assert town.status(task_id) == "ASSIGNED"
    assert town.states(task_id) == [(ali.id, "ACCEPTED", None)]


def test_matcher_settles_tasks_that_fell_due_before_its_start(town: Neighbourhood, start: Start) -> None:
    town.students(10, 20)
    task_id = town.press()
    town.make_overdue(task_id)
    start()
    eventually(lambda: len(town.asked_in_order(task_id)) == 2, "the next student is asked")


def test_three_matchers_report_a_task_once(town: Neighbourhood, start: Start) -> None:
    coordinator, ali = town.coordinator(), town.student(10)
    task_id = town.press()
    town.matching.accept(ali, task_id)
    town.age(task_id, 1801)
    for _ in range(3):
        start()
    eventually(lambda: town.told(coordinator), "the coordinator is notified")
    second = town.press(town.elder("Hatice Demir", town.spot_at(3000)))
    assert town.status(second) == "TIMED_OUT"
    assert [row.kind for row in town.told(coordinator, task_id=task_id)] == ["NOT_STARTED"]


def test_next_matcher_continues_after_a_stopped_one(town: Neighbourhood, services: Services) -> None:
    town.students(10, 20, 30)
    task_id = town.press()
    with running(services):
        eventually(lambda: len(town.asked_in_order(task_id)) == 2, "the second student is asked")
    with running(services):
        eventually(ended(town, task_id), "all offers have expired")
    assert_all_students_were_asked_once(town, [task_id], students=3)


# ---- Redis is lost and comes back ----


def test_press_and_cascade_work_without_redis(services: Services, town: Neighbourhood, start: Start) -> None:
    nowhere = {"redis_url": "redis://127.0.0.1:1/0"}
    town.students(10, 20)
    start(**nowhere)
    api = build_services(services.settings.model_copy(update=nowhere), role="test", pool_size=2)
    task_id = Neighbourhood(api).press()
    api.close()
    eventually(ended(town, task_id), "both offers have expired")
    assert len(town.asked_in_order(task_id)) == 2
    assert max(lateness_s(town)) < 3


@pytest.mark.parametrize("environ", [LONG])
def test_keys_are_rebuilt_when_redis_was_emptied(town: Neighbourhood, services: Services, start: Start) -> None:
    students = town.students(10, 20, 30, 40)
    searching = town.press(town.elder("Elder Bir"))
    other = town.press(town.elder("Elder İki"))
    held = town.press(town.elder("Elder Üç"))
    town.matching.accept(students[2], held)
    waiting_spot = town.spot_at(5000)
    town.student(10, at=waiting_spot)
    town.press(town.elder("Elder Dört", waiting_spot))
    waiting = town.press(town.elder("Elder Beş", waiting_spot))
    start()
    eventually(services.clockwork.is_complete, "the first rebuild")
    before = {task_id: town.keys(task_id) for task_id in (searching, other, held, waiting)}
    town.redis.flushdb()
    eventually(services.clockwork.is_complete, "the rebuild")
    for task_id, keys in before.items():
        now = town.keys(task_id)
        assert (now.asked, now.score_ms) == (keys.asked, keys.score_ms)
        assert now.score_ms == to_ms(town.task(task_id).next_step_at)
        assert abs(now.asked_ttl_ms - keys.asked_ttl_ms) < 10_000
    assert town.keys(searching).asked == students[0].id
    listed_again = [student.id for student in (students[1], students[3])]
    eventually(
        lambda: town.keys(searching).candidates == listed_again, "the students who can still be asked are listed again"
    )
    assert town.keys(held).candidates == []
    town.matching.reject(students[0], searching)
    assert town.asked(searching) == students[3].id


def test_cascade_goes_on_when_redis_is_emptied(town: Neighbourhood, start: Start) -> None:
    town.students(10, 20, 30)
    start()
    task_id = town.press()
    for number in (1, 2):
        eventually(lambda n=number: len(town.asked_in_order(task_id)) == n, f"student {number} is asked")
        town.redis.flushdb()
    eventually(ended(town, task_id), "all offers have expired")
    assert len(town.asked_in_order(task_id)) == 3


@pytest.mark.parametrize("environ", [LONG])
def test_redis_gets_changes_that_it_missed_while_away(town: Neighbourhood, services: Services, start: Start) -> None:
    gate = Gate(services.settings.redis_url)
    try:
        own = services.settings.model_copy(update={"redis_url": gate.url})
        api = build_services(own, role="test", pool_size=4)
        start(redis_url=gate.url)
        ali, banu = town.students(10, 20)
        accepted = api.matching.press(elder := town.elder(), NewTask(elder.id)).task.id
        eventually(services.clockwork.is_complete, "the first rebuild")
        assert town.keys(accepted).asked == ali.id
        gate.close()
        api.matching.accept(ali, accepted)
        pressed = api.matching.press(other := town.elder("Hatice Demir"), NewTask(other.id)).task.id
        assert town.asked(pressed) == banu.id
        assert town.keys(accepted).asked == ali.id, "Redis has the accept although it was away"
        gate.open()

        def caught_up() -> bool:
            after_accept, missed = town.keys(accepted), town.keys(pressed)
            return after_accept.asked is None and after_accept.candidates == [] and missed.asked == banu.id

        eventually(caught_up, "Redis agrees with PostgreSQL again")
        assert town.keys(accepted).score_ms == to_ms(town.task(accepted).next_step_at)
        assert town.keys(pressed).score_ms == to_ms(town.task(pressed).next_step_at)
        eventually(services.clockwork.is_complete, "the rebuild")
        api.close()
    finally:
        gate.close()


@pytest.mark.parametrize("environ", [LONG])
def test_stale_member_of_the_sorted_set_blocks_no_other_task(town: Neighbourhood, start: Start) -> None:
    town.students(10, 20)
    task_id = town.press()
    unknown = UUID(int=5)
    town.redis.zadd("offer_deadlines", {str(unknown): 1, str(task_id): 2})
    start(matcher_reconciler=False)
    eventually(lambda: town.redis.zscore("offer_deadlines", str(unknown)) is None, "the unknown task is removed")
    right = to_ms(town.task(task_id).next_step_at)
    eventually(lambda: town.keys(task_id).score_ms == right, "the early score is replaced by the time in PostgreSQL")
    assert len(town.asked_in_order(task_id)) == 1


@pytest.mark.parametrize("environ", [LONG])
def test_lost_deadline_is_found_and_counted(town: Neighbourhood, start: Start) -> None:
    clockwork = town.services.clockwork
    clockwork.finish_rebuild(clockwork.begin_rebuild())
    town.students(10, 20)
    task_id = town.press()
    # Only recent changes are compared with Redis.
    town.run("UPDATE tasks SET updated_at = updated_at - interval '1 hour' WHERE id = :id", id=task_id)
    town.redis.delete(f"pending_assignment:{task_id}", "offer_deadlines")
    town.age(task_id, 700)
    matcher = start()
    eventually(lambda: len(town.asked_in_order(task_id)) == 2, "the next student is asked")
    assert found_by_sweep(matcher) == 1


@pytest.mark.parametrize("environ", [LONG])
def test_forged_expiry_event_expires_no_offer(town: Neighbourhood, start: Start) -> None:
    ali, _ = town.students(10, 20)
    task_id = town.press()
    start(matcher_ticker=False, matcher_reconciler=False)
    eventually(lambda: subscribers(town) > 0, "the listener follows the events")
    channel = f"__keyevent@{town.redis.connection_pool.connection_kwargs['db']}__:expired"
    for key in ("pending_assignment:nonsense", "other", f"pending_assignment:{UUID(int=9)}"):
        town.redis.publish(channel, key)
    town.redis.delete(f"pending_assignment:{task_id}")
    town.redis.publish(channel, f"pending_assignment:{task_id}")
    eventually(lambda: town.keys(task_id).asked == ali.id, "the key is restored")
    assert town.states(task_id) == [(ali.id, "PENDING", None)]


@pytest.mark.parametrize("environ", [LONG])
def test_redis_gets_a_change_whose_hint_was_lost(town: Neighbourhood, start: Start) -> None:
    """As when a process is killed between its commit and its write to Redis."""
    clockwork = town.services.clockwork
    clockwork.finish_rebuild(clockwork.begin_rebuild())
    ali, _ = town.students(10, 20)
    task_id = town.press()
    town.redis.delete(f"pending_assignment:{task_id}", f"task_version:{task_id}")
    town.redis.zadd("offer_deadlines", {str(task_id): 10**14})
    right = to_ms(town.task(task_id).next_step_at)
    start(matcher_ticker=False, matcher_listener=False)

    def agrees() -> bool:
        keys = town.keys(task_id)
        return (keys.asked, keys.score_ms) == (ali.id, right)

    eventually(agrees, "Redis agrees with PostgreSQL")
