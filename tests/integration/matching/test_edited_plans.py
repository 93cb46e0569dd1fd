"""Operators may edit the plans by which matching notifies people. No edit stops the cascade."""

import pytest

from tests.support.matching import Neighbourhood


def test_edited_template_is_used_from_the_next_notification_on(town: Neighbourhood) -> None:
    elder, ahmet = town.elder(), town.student(10)
    town.run("UPDATE message_templates SET body = '{{ student }} geliyor!' WHERE key = 'matching.on_the_way'")
    town.matching.accept(ahmet, town.press(elder))
    assert town.bodies(elder, "ON_THE_WAY") == ["Ahmet geliyor!"]


def test_notification_uses_the_language_of_the_profile(town: Neighbourhood) -> None:
    elder, ahmet = town.elder(locale="en"), town.student(10)
    town.matching.accept(ahmet, town.press(elder))
    assert town.bodies(elder, "ON_THE_WAY") == ["Ahmet is on the way!"]


@pytest.mark.parametrize("broken_on_purpose", [{"an offer without a notification to its student"}])
@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE action_plan_steps SET channel_type = 'pigeon'",
        "UPDATE action_plan_steps SET audience = 'ROUTES'",
        "UPDATE action_plan_steps SET retired_at = clock_timestamp()",
        "UPDATE action_plans SET status = false",
    ],
)
def test_plan_without_recipients_does_not_stop_the_cascade(town: Neighbourhood, edit: str) -> None:
    town.run(edit)
    elder, (near, far) = town.elder(), town.students(10, 500)
    task_id = town.press(elder)
    assert town.asked(task_id) == near.id
    assert town.told(near, "OFFER") == []
    town.expire(task_id)
    assert town.asked(task_id) == far.id
    town.matching.cancel(elder, task_id)
    assert town.status(task_id) == "CANCELLED"


def test_later_steps_of_an_offer_plan_are_cancelled_with_the_offer(town: Neighbourhood) -> None:
    town.run("UPDATE action_plan_steps SET fallback = '{sms}', within_s = 60")
    elder, ahmet = town.elder(), town.student(10)
    task_id = town.press(elder)
    assert [row.status for row in town.told(ahmet, "OFFER")] == ["ACCEPTED"]
    town.matching.cancel(elder, task_id)
    [action] = town.all("SELECT status, due_at FROM actions WHERE data ->> 'type' = 'OFFER'")
    assert (action.status, action.due_at) == ("CANCELLED", None)


def test_added_recipient_is_notified_of_a_timed_out_search(town: Neighbourhood) -> None:
    elder = town.elder()
    town.press(elder)
    [action] = town.all("SELECT * FROM actions WHERE data ->> 'type' = 'NOBODY_FOUND'")
    assert action.person_id == elder.id
    assert [step["audience"] for step in action.steps] == ["PERSON", "ROUTES"]
    assert action.variables == {"elder": "Ayşe Yılmaz", "phone": "+905550000001"}
