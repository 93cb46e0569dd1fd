"""The log tells a task's whole life by ids, and only what was committed."""

from typing import Any

import pytest

from app.matching.rules.errors import OfferExpired
from tests.support.matching import Neighbourhood

Logs = list[Any]


def events(logs: Logs) -> list[tuple[str, str, int | None]]:
    return [
        (line["log_level"], line["event"], line.get("student_id"))
        for line in logs
        if line["event"].startswith(("task_", "offer_", "student_"))
    ]


def test_the_life_of_a_task_is_logged_by_ids(town: Neighbourhood, logs: Logs) -> None:
    silent, unwilling, helpful = town.students(10, 20, 30)
    elder = town.elder()
    task_id = town.press(elder)
    town.expire(task_id)
    town.matching.reject(unwilling, task_id)
    town.matching.accept(helpful, task_id)
    town.matching.start(helpful, task_id)
    town.matching.complete(helpful, task_id)
    assert events(logs) == [
        ("info", "task_created", None),
        ("debug", "offer_made", silent.id),
        ("debug", "offer_expired", silent.id),
        ("debug", "offer_made", unwilling.id),
        ("debug", "offer_rejected", unwilling.id),
        ("debug", "offer_made", helpful.id),
        ("debug", "offer_accepted", helpful.id),
        ("info", "task_assigned", helpful.id),
        ("info", "task_started", None),
        ("info", "task_completed", None),
    ]
    assert {line["task_id"] for line in logs if "task_id" in line} == {str(task_id)}
    assert next(line["elder_id"] for line in logs if line["event"] == "task_created") == elder.id


def test_a_search_that_ends_is_logged_with_the_students_it_passed_by(town: Neighbourhood, logs: Logs) -> None:
    asked, leaving = town.students(10, 20)
    task_id = town.press()
    town.matching.set_availability(leaving, False)
    logs.clear()
    town.expire(task_id)
    assert events(logs) == [
        ("debug", "offer_expired", asked.id),
        ("debug", "student_skipped", leaving.id),
        ("info", "task_timed_out", None),
    ]


class PowerCut(Exception):
    pass


def test_what_is_rolled_back_is_not_logged(town: Neighbourhood, logs: Logs) -> None:
    student = town.student(10)
    task_id = town.press()
    town.make_overdue(task_id)
    logs.clear()
    with pytest.raises(OfferExpired):
        town.matching.accept(student, task_id)
    with pytest.raises(PowerCut), town.matching.stores.transaction() as store:
        expired, _ = store.expire_offers([task_id])()
        assert expired
        raise PowerCut
    assert events(logs) == []
