"""A task that asks two students at once. An index forbids that today, and nothing but the index does."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from app.matching import notices
from app.matching.models import offers
from app.matching.rules.errors import OfferWithdrawn
from app.matching.store.records import Pick
from app.users.models import Caller
from tests.support.matching import Neighbourhood

ONE_LIVE_PER_TASK = next(index for index in offers.indexes if index.name == "offers_one_live_per_task")


@pytest.fixture(autouse=True)
def without_the_index(town: Neighbourhood, promises_hold: None) -> Iterator[None]:
    with town.db.transaction() as conn:
        ONE_LIVE_PER_TASK.drop(conn)
    yield
    town.run("UPDATE offers SET state = 'WITHDRAWN', closed_at = clock_timestamp() WHERE state = 'PENDING'")
    with town.db.transaction() as conn:
        ONE_LIVE_PER_TASK.create(conn)


def ask_both(town: Neighbourhood) -> tuple[UUID, Caller, Caller, Caller]:
    """The second student is asked later and has less time."""
    first, second = town.students(10, 20)
    elder = town.elder()
    task_id = town.press(elder, note="Ekmek")
    rules = town.matching.rules
    with town.matching.stores.transaction() as store:
        made = store.insert_offers([Pick(task_id, second.id, 2, 0, 20.0)], rules.offer_ttl - timedelta(minutes=5))
        notices.offers(store, made, {task.id: task for task in store.read_tasks([task_id])}, rules)
    town.run("UPDATE tasks SET asked = 2 WHERE id = :id", id=task_id)
    town.advance(task_id)
    return task_id, elder, first, second


def deadline_of(town: Neighbourhood, task_id: UUID, student: Caller):
    return next(offer.deadline for offer in town.offers(task_id) if offer.student_id == student.id)


def test_both_see_their_own_offer_and_everybody_else_the_first_deadline(town: Neighbourhood) -> None:
    task_id, elder, first, second = ask_both(town)
    boss = town.coordinator()
    for student in (first, second):
        mine, view = town.matching.current_offer(student), town.matching.task(student, task_id)
        assert mine is not None and view.current_offer is not None
        assert mine.deadline == view.current_offer.deadline == deadline_of(town, task_id, student)
        assert (mine.note, view.note) == ("Ekmek", "Ekmek")
    for other in (elder, boss):
        shown = town.matching.task(other, task_id).current_offer
        assert shown is not None and shown.deadline == deadline_of(town, task_id, second)
        page = town.matching.tasks(other, status=None, cursor=None, limit=10)
        assert [item.id for item in page.items] == [task_id], "once, and not once for each offer"
    shown = town.matching.task(boss, task_id).current_offer
    assert shown is not None and shown.student_id == second.id


def test_redis_shows_the_first_deadline_and_then_the_next(town: Neighbourhood) -> None:
    task_id, _, first, second = ask_both(town)
    assert town.keys(task_id).asked == second.id
    assert town.task(task_id).next_step_at == deadline_of(town, task_id, second)
    with town.matching.stores.reading() as store:
        [standing] = store.standings([task_id])
    assert standing.student_id == second.id
    town.matching.reject(second, task_id)
    assert town.keys(task_id).asked == first.id
    assert town.task(task_id).next_step_at == deadline_of(town, task_id, first)


def test_an_accept_takes_back_the_other_offer(town: Neighbourhood) -> None:
    task_id, _, first, second = ask_both(town)
    town.matching.accept(first, task_id)
    assert town.states(task_id) == [
        (first.id, "ACCEPTED", None),
        (second.id, "WITHDRAWN", "ACCEPTED_BY_ANOTHER"),
    ]
    assert [row.kind for row in town.told(second)] == ["OFFER", "OFFER_WITHDRAWN"]
    assert town.matching.current_offer(second) is None
    with pytest.raises(OfferWithdrawn):
        town.matching.accept(second, task_id)
    assert town.keys(task_id).asked is None


def test_a_withdrawn_offer_leaves_the_other_alone(town: Neighbourhood) -> None:
    task_id, _, first, second = ask_both(town)
    town.matching.set_availability(second, False)
    assert town.states(task_id) == [(first.id, "PENDING", None), (second.id, "WITHDRAWN", "OFF_DUTY")]
    assert town.keys(task_id).asked == first.id
    assert town.task(task_id).next_step_at == deadline_of(town, task_id, first)
