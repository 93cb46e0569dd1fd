"""The Redis keys of a task after each deed: order of the list, value and TTL of the pending key, score."""

import pytest

from app.bootstrap.build_services import build_services
from app.redis_store.contract import to_ms
from app.users.models import Caller
from tests.support.matching import KeysShown, Neighbourhood, at_once


def assert_asking(town: Neighbourhood, keys: KeysShown, task_id, student: Caller, rest: list[Caller]) -> None:
    deadline = town.task(task_id).next_step_at
    assert keys.candidates == [other.id for other in rest]
    assert keys.asked == student.id == town.asked(task_id)
    assert keys.score_ms == to_ms(deadline)
    left_ms = (deadline - town.db.now()).total_seconds() * 1000
    assert left_ms - 50 < keys.asked_ttl_ms <= 600_002
    if rest:
        assert 3590 < keys.candidates_ttl_s <= 3600
    else:
        assert keys.candidates_ttl_s == -2, "the list exists although it is empty"


def test_keys_after_create_reject_expiry_and_accept(town: Neighbourhood) -> None:
    ali, banu, can, dilek = (
        town.student(400),
        town.student(10, completed=2),
        town.student(300),
        town.student(5, completed=5),
    )
    task_id = town.press()
    assert_asking(town, town.keys(task_id), task_id, can, [ali, banu, dilek])
    town.matching.reject(can, task_id)
    assert_asking(town, town.keys(task_id), task_id, ali, [banu, dilek])
    town.expire(task_id)
    assert_asking(town, town.keys(task_id), task_id, banu, [dilek])
    town.matching.accept(banu, task_id)
    keys = town.keys(task_id)
    assert (keys.candidates, keys.asked) == ([], None), "a key of the task is left"
    assert (keys.candidates_ttl_s, keys.asked_ttl_ms) == (-2, -2)
    assert keys.score_ms == to_ms(town.task(task_id).next_step_at), (
        "the score is not the time by which the task must be started"
    )
    town.matching.start(banu, task_id)
    assert town.keys(task_id).score_ms == to_ms(town.task(task_id).next_step_at)
    town.matching.complete(banu, task_id)
    assert town.keys(task_id).nothing


def test_last_candidate_leaves_no_list(town: Neighbourhood) -> None:
    only = town.student(10)
    task_id = town.press()
    assert_asking(town, town.keys(task_id), task_id, only, [])


def test_exhausted_search_leaves_no_keys(town: Neighbourhood) -> None:
    ali, banu = town.students(10, 20)
    task_id = town.press()
    town.matching.reject(ali, task_id)
    town.matching.reject(banu, task_id)
    assert town.status(task_id) == "TIMED_OUT"
    assert town.keys(task_id).nothing


def test_expiry_of_the_last_offer_leaves_no_keys(town: Neighbourhood) -> None:
    town.student(10)
    task_id = town.press()
    town.expire(task_id)
    assert town.keys(task_id).nothing


def test_cancel_leaves_no_keys(town: Neighbourhood) -> None:
    elder = town.elder()
    ali, _ = town.students(10, 20)
    while_searching = town.press(elder)
    town.matching.cancel(elder, while_searching)
    accepted = town.press(elder)
    town.matching.accept(ali, accepted)
    town.matching.cancel(elder, accepted)
    assert town.keys(while_searching).nothing
    assert town.keys(accepted).nothing


def test_withdraw_makes_a_new_list_without_the_student(town: Neighbourhood) -> None:
    ali, banu, can = town.students(10, 20, 30)
    task_id = town.press()
    town.matching.accept(ali, task_id)
    town.matching.withdraw(ali, task_id)
    assert_asking(town, town.keys(task_id), task_id, banu, [can])


def test_keys_after_move_on_and_assign(town: Neighbourhood) -> None:
    coordinator = town.coordinator()
    ali, banu, can = town.students(10, 20, 30)
    task_id = town.press()
    town.matching.move_on(coordinator, task_id)
    assert_asking(town, town.keys(task_id), task_id, banu, [can])
    town.matching.assign(coordinator, task_id, ali.id)
    keys = town.keys(task_id)
    assert (keys.candidates, keys.asked) == ([], None)
    town.matching.release(coordinator, task_id)
    assert_asking(town, town.keys(task_id), task_id, can, [])


def test_skipped_students_leave_the_list_and_busy_ones_stay(town: Neighbourhood) -> None:
    ali, banu, can, dilek, ece = town.students(10, 20, 30, 40, 50)
    elsewhere = town.press(town.elder("Hatice Demir"))
    assert town.asked(elsewhere) == ali.id
    task_id = town.press()
    assert_asking(town, town.keys(task_id), task_id, banu, [ali, can, dilek, ece])
    town.matching.set_availability(can, False)
    town.matching.reject(banu, task_id)
    assert_asking(town, town.keys(task_id), task_id, dilek, [ali, ece])
    town.matching.reject(ali, elsewhere)
    town.expire(task_id)
    assert_asking(town, town.keys(task_id), task_id, ali, [ece])


def test_waiting_task_has_a_list_and_a_score_but_no_pending_key(town: Neighbourhood) -> None:
    ali = town.student(10)
    elsewhere = town.press(town.elder("Hatice Demir"))
    task_id = town.press()
    keys = town.keys(task_id)
    assert (keys.candidates, keys.asked) == ([ali.id], None)
    assert keys.score_ms == to_ms(town.task(task_id).next_step_at) == to_ms(town.task(elsewhere).next_step_at)


@pytest.mark.parametrize("environ", [{"offer_ttl_s": 45}])
def test_ttl_follows_the_setting(town: Neighbourhood) -> None:
    town.student(10)
    task_id = town.press()
    assert 44_000 < town.keys(task_id).asked_ttl_ms <= 45_002
    assert town.told(kind="OFFER")[0].body.endswith("Kabul etmek için 45 saniyen var.")


def test_press_makes_an_offer_while_redis_is_down(town: Neighbourhood) -> None:
    ali, banu = town.students(10, 20)
    down = build_services(
        town.services.settings.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"}), role="test", pool_size=2
    )
    blind = Neighbourhood(down)
    task_id = blind.press()
    assert blind.asked(task_id) == ali.id
    blind.matching.reject(ali, task_id)
    assert blind.asked(task_id) == banu.id
    blind.expire(task_id)
    assert blind.status(task_id) == "TIMED_OUT"
    down.close()


def test_parallel_presses_do_not_make_redis_look_incomplete(town: Neighbourhood) -> None:
    town.services.clockwork.finish_rebuild(town.services.clockwork.begin_rebuild())
    town.students(*range(10, 90, 10))
    at_once(*(lambda elder=elder: town.press(elder) for elder in town.elders(16)))
    assert town.services.clockwork.is_complete()
