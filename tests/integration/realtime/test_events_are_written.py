"""Every change that is an event is written by its own transaction, whoever makes it; and nothing else is."""

from collections.abc import Callable

import pytest
from sqlalchemy import text

from app.delivery.channels.models import in_app_messages
from app.foundation.ids import uuid7
from app.matching.contract import TaskOutcome
from app.realtime.contract import EventType
from app.realtime.event_visibility import EventRow
from tests.integration.realtime.conftest import types, written
from tests.support.matching import Neighbourhood


@pytest.fixture
def told(town: Neighbourhood) -> Callable[[], list[EventRow]]:
    """The events since the last call."""
    seen = [0]

    def told() -> list[EventRow]:
        rows = written(town.db)
        new = rows[seen[0] :]
        seen[0] = len(rows)
        assert [row.id for row in rows] == list(range(1, len(rows) + 1)), "no gap, no repeat"
        return new

    return told


def test_a_task_from_the_press_to_its_end(town: Neighbourhood, told: Callable[[], list[EventRow]]) -> None:
    elder = town.elder(institution_id=1)
    first, second, third = town.students(10, 20, 30)
    matching, coordinator = town.matching, town.coordinator(institution_id=1)
    task = town.press(elder)
    created, offered = told()
    assert types([created, offered]) == ["TASK_CREATED", "TASK_OFFERED"]
    assert (created.task_id, created.elder_id, created.person_id) == (task, elder.id, None)
    assert (offered.person_id, offered.person_name, offered.institutions) == (first.id, first.name, {1})
    assert offered.deadline == matching.offers(coordinator, task)[0].deadline
    matching.reject(first, task)
    assert types(told()) == ["OFFER_REJECTED", "TASK_REOFFERED"]
    matching.accept(second, task)
    assert [(row.type, row.person_id) for row in told()] == [("TASK_ASSIGNED", second.id)]
    matching.start(second, task)
    matching.withdraw(second, task)
    started, released, again = told()
    assert types([started, released, again]) == ["TASK_STARTED", "TASK_RELEASED", "TASK_REOFFERED"]
    assert (released.person_id, again.person_id) == (second.id, third.id)
    matching.accept(third, task)
    matching.complete(coordinator, task)
    assert types(told()) == ["TASK_ASSIGNED", "TASK_STARTED", "TASK_COMPLETED"]


def test_an_offer_that_expires_and_a_search_that_finds_nobody(
    town: Neighbourhood, told: Callable[[], list[EventRow]]
) -> None:
    town.student(10)
    task = town.press()
    told()
    town.expire(task)
    assert types(told()) == ["OFFER_EXPIRED", "TASK_TIMED_OUT"]


def test_what_became_of_a_task_that_nobody_took(town: Neighbourhood, told: Callable[[], list[EventRow]]) -> None:
    coordinator, task = town.coordinator(), town.press(town.elder(institution_id=1))
    assert types(told())[-1] == "TASK_TIMED_OUT"
    for outcome, note in ((TaskOutcome.NOT_REACHED, None), (TaskOutcome.OTHER, "Kızı aradı")):
        for _twice in range(2):
            town.matching.say_outcome(coordinator, task, outcome, note)
        [resolved] = told()
        assert (resolved.type, resolved.task_id, resolved.institutions) == ("TASK_RESOLVED", task, {1})
    town.run("UPDATE task_outcomes SET note = NULL")
    assert told() == [], "retention is no news"
    town.run("DELETE FROM task_outcomes")
    town.matching.say_outcome(coordinator, task, TaskOutcome.OTHER, None)
    assert types(told()) == ["TASK_RESOLVED"]


def test_what_the_coordinator_does(town: Neighbourhood, told: Callable[[], list[EventRow]]) -> None:
    first, second = town.students(10, 20)
    coordinator = town.coordinator()
    task = town.press()
    told()
    town.matching.move_on(coordinator, task)
    withdrawn, again = told()
    assert types([withdrawn, again]) == ["OFFER_WITHDRAWN", "TASK_REOFFERED"]
    assert (withdrawn.person_id, withdrawn.reason) == (first.id, "MOVED_ON")
    town.matching.assign(coordinator, task, first.id)
    assert [(row.type, row.person_id) for row in told()] == [
        ("OFFER_WITHDRAWN", second.id),
        ("TASK_ASSIGNED", first.id),
    ]
    town.matching.cancel(coordinator, task)
    assert [(row.type, row.person_id) for row in told()] == [("TASK_CANCELLED", first.id)]


def test_a_candidate_who_is_passed_by(town: Neighbourhood, told: Callable[[], list[EventRow]]) -> None:
    first, second, third = town.students(10, 20, 30)
    task = town.press()
    told()
    town.run("UPDATE students SET active = false WHERE id = :id", id=second.id)
    town.matching.reject(first, task)
    rows = told()
    assert sorted(types(rows)) == ["OFFER_REJECTED", "STUDENT_SKIPPED", "TASK_REOFFERED"]
    assert {row.type: (row.person_id, row.reason) for row in rows}[EventType.STUDENT_SKIPPED] == (second.id, "INACTIVE")
    assert third.id in {row.person_id for row in rows}


def test_duty_and_only_when_it_changes(town: Neighbourhood, told: Callable[[], list[EventRow]]) -> None:
    student = town.student(10)
    told()
    town.matching.set_availability(student, on_duty=True)
    town.matching.set_location(student.id, town.spot_at(50))
    assert told() == []
    town.matching.set_availability(student, on_duty=False)
    town.run("UPDATE students SET on_duty = true")
    assert [(row.type, row.person_id, row.on_duty) for row in told()] == [
        ("DUTY_CHANGED", student.id, False),
        ("DUTY_CHANGED", student.id, True),
    ]


def test_duty_is_told_to_the_institutions_that_know_the_student(
    town: Neighbourhood, told: Callable[[], list[EventRow]]
) -> None:
    student = town.student(10)
    town.run("UPDATE users SET institution_id = 4 WHERE id = :id", id=student.id)
    town.press(town.elder(institution_id=1))
    told()
    town.matching.set_availability(student, on_duty=False)
    assert [row.institutions for row in told() if row.type == "DUTY_CHANGED"] == [{1, 4}]


def test_a_message_in_the_app(town: Neighbourhood, told: Callable[[], list[EventRow]]) -> None:
    elder = town.elder()
    new = {"notification_id": uuid7(), "user_id": elder.id, "subject": "", "body": "", "data": {}}
    with town.db.transaction() as conn:
        message_id = conn.execute(in_app_messages.insert().values(new)).inserted_primary_key
    assert message_id is not None
    assert [(row.type, row.person_id, row.message_id) for row in told()] == [
        ("MESSAGE_ARRIVED", elder.id, message_id[0])
    ]


NO_EVENTS = (
    "UPDATE tasks SET note = NULL, asked = asked + 1",
    "UPDATE offers SET distance_m = ceil(distance_m / 100) * 100, reason = 'X'",
    "UPDATE students SET location = NULL, active = false, completed = 7",
    "UPDATE in_app_messages SET read_at = clock_timestamp()",
    "INSERT INTO users (role, name) SELECT 'STUDENT', 'Ahmet' FROM generate_series(1, 500)",
    "INSERT INTO students (id, on_duty) SELECT id, false FROM users u"
    " WHERE role = 'STUDENT' AND NOT EXISTS (SELECT FROM students s WHERE s.id = u.id)",
    # A history that is imported.
    """
    INSERT INTO tasks (id, status, elder_id, location, created_at, updated_at, search_until)
    SELECT gen_random_uuid(), 'COMPLETED', elder_id, location, now(), now(), now() FROM tasks
    """,
    """
    INSERT INTO offers (task_id, student_id, state, offered_at)
    SELECT t.id, s.id, state, CASE WHEN state <> 'SKIPPED' THEN now() END
      FROM (SELECT id FROM tasks WHERE status = 'COMPLETED' LIMIT 1) t,
           (SELECT id, row_number() OVER (ORDER BY id) AS place FROM students) s
      JOIN unnest(ARRAY['REJECTED', 'EXPIRED', 'WITHDRAWN', 'SKIPPED']) WITH ORDINALITY state (state, n) ON n = place
    """,
    "DELETE FROM offers WHERE state = 'SKIPPED'",
)


def test_what_changes_nothing_that_people_wait_for_is_no_event(
    town: Neighbourhood, told: Callable[[], list[EventRow]]
) -> None:
    first, _ = town.students(10, 20)
    town.matching.reject(first, town.press())
    told()
    for statement in NO_EVENTS:
        town.run(statement)
        assert types(told()) == [], statement


def test_a_transaction_that_is_rolled_back_leaves_no_event(
    town: Neighbourhood, told: Callable[[], list[EventRow]]
) -> None:
    town.press()
    told()
    with pytest.raises(RuntimeError), town.db.transaction() as conn:
        conn.execute(text("UPDATE tasks SET status = 'CANCELLED', next_step_at = NULL"))
        raise RuntimeError
    assert told() == []
