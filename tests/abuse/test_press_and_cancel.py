"""Whoever presses and cancels in a loop: students have their peace, and coordinators get one message."""

from app.jobs.checks.questions_of_history import OF_HISTORY
from app.matching.contract import NewTask
from app.matching.role import Matcher
from app.users.models import Caller, LatLon
from tests.support.matching import Neighbourhood

AT_SEA = LatLon(36.0, 30.0)


def pass_minutes(town: Neighbourhood, minutes: int) -> None:
    for column in ("created_at", "ended_at", "alarmed_at"):
        town.run(
            f"UPDATE tasks SET {column} = {column} - make_interval(mins => CAST(:minutes AS int))", minutes=minutes
        )


def press_and_cancel(town: Neighbourhood, elder: Caller, by: Caller | None = None) -> int | None:
    """Returns the student who was asked."""
    task_id = town.matching.press(by or elder, NewTask(elder.id)).task.id
    asked = town.asked(task_id)
    if asked is not None:
        town.matching.cancel(by or elder, task_id)
    pass_minutes(town, 1)
    return asked


def test_student_is_asked_twice_and_then_left_in_peace_for_an_hour(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10)
    assert [press_and_cancel(town, elder) for _ in range(6)] == [ali.id, ali.id, None, None, None, None]
    assert len(town.told(ali, "OFFER")) == 2
    pass_minutes(town, 54)
    assert press_and_cancel(town, elder) is None, "59 minutes after the second cancel"
    pass_minutes(town, 2)
    assert press_and_cancel(town, elder) == ali.id


def test_others_are_asked_meanwhile_and_the_student_for_others(town: Neighbourhood) -> None:
    elder, ali, banu = town.elder(), town.student(10), town.student(20)
    asked = [press_and_cancel(town, elder) for _ in range(4)]
    assert asked == [ali.id, ali.id, banu.id, banu.id]
    assert town.asked(town.press(town.elder("Hatice Demir"))) == ali.id


def test_cancels_more_than_an_hour_apart_do_not_count(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10)
    for _ in range(3):
        assert press_and_cancel(town, elder) == ali.id
        pass_minutes(town, 61)


def test_coordinators_do_not_get_round_it(town: Neighbourhood) -> None:
    """Presses and cancels of several people in the name of one elder count together."""
    elder, ali = town.elder(), town.student(10)
    by = [town.coordinator(name) for name in ("Zeynep Koç", "Elif Aydın", "Zeynep Koç")]
    assert [press_and_cancel(town, elder, one) for one in by] == [ali.id, ali.id, None]


def test_accepted_and_rejected_offers_count_too(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10)
    town.student(20)
    for answer in (town.matching.accept, town.matching.reject):
        task_id = town.press(elder)
        answer(ali, task_id)
        town.matching.cancel(elder, task_id)
    assert town.asked(town.press(elder)) != ali.id


def test_waiting_task_does_not_hide_the_next_from_a_student_it_spares(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10)
    for _ in range(2):
        press_and_cancel(town, elder)
    banu = town.student(20)
    hatice = town.press(town.elder("Hatice Demir"))
    assert town.asked(hatice) == ali.id
    assert town.asked(town.press(town.elder("Fatma Kara"))) == banu.id
    older, younger = town.press(elder), town.press(town.elder("Emine Ak"))
    assert (town.asked(older), town.asked(younger)) == (None, None)
    town.matching.reject(ali, hatice)
    assert (town.asked(older), town.asked(younger)) == (None, ali.id)


def nobody_comes(town: Neighbourhood, elder: Caller) -> None:
    town.matching.press(elder, NewTask(elder.id))
    pass_minutes(town, 1)


def test_alarms_about_one_elder_are_joined(town: Neighbourhood, matcher: Matcher) -> None:
    elder, coordinator = town.elder(at=AT_SEA), town.coordinator()
    for _ in range(5):
        nobody_comes(town, elder)
        matcher.reconciler.send_owed_alarms()
    assert len(town.told(elder, "NOBODY_FOUND")) == 5, "the elder is told each time"
    [first] = town.told(coordinator, "NOBODY_FOUND_FOR")
    assert "daha" not in first.body
    pass_minutes(town, 10)
    for _ in range(2):
        matcher.reconciler.send_owed_alarms()
    [_, joined] = town.told(coordinator, "NOBODY_FOUND_FOR")
    assert "4 talebe daha" in joined.body and elder.name in joined.body
    assert joined.task_id == town.one("SELECT max(id::text)::uuid AS id FROM tasks").id
    pass_minutes(town, 10)
    nobody_comes(town, elder)
    assert len(town.told(coordinator, "NOBODY_FOUND_FOR")) == 3, "the next one after the interval is told at once"


def test_alarms_about_two_elders_are_not_joined(town: Neighbourhood) -> None:
    coordinator = town.coordinator()
    for elder in (town.elder(at=AT_SEA), town.elder("Hatice Demir", AT_SEA)):
        nobody_comes(town, elder)
    assert len(town.told(coordinator, "NOBODY_FOUND_FOR")) == 2


def test_joined_alarm_keeps_the_promise_that_coordinators_are_told(town: Neighbourhood, matcher: Matcher) -> None:
    question = next(one for one in OF_HISTORY if one.name == "a search that timed out, and no coordinator was told")
    elder, _ = town.elder(at=AT_SEA), town.coordinator()
    town.run("UPDATE users SET created_at = created_at - interval '1 day'")
    for _ in range(3):
        nobody_comes(town, elder)
    values = {"noticed_since": "00000000-0000-0000-0000-000000000000"}
    assert town.all(question.sql, **values) == []
    pass_minutes(town, 61)
    assert len(town.all(question.sql, **values)) == 2, "owed for more than an hour"
    matcher.reconciler.send_owed_alarms()
    assert town.all(question.sql, **values) == []
