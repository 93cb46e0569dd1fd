"""The students whom a coordinator finds for a task, and why the cascade would not ask them."""

from uuid import UUID

import pytest
from sqlalchemy import text

from app.foundation.ids import uuid7
from app.matching.contract import AssignableStudent, TaskNotFound
from app.users.contract import StaffScope, search_people
from app.users.people_search import WORDS, fold
from tests.support.matching import NO_LIMITS, Neighbourhood

ALL = StaffScope(1)


def found(town: Neighbourhood, task_id: UUID, search: str | None = None, scope: StaffScope = ALL, limit: int = 50):
    typed = None if search is None else search_people(search)
    return list(town.matching.assignable(scope, task_id, typed, limit))


def names(students: list[AssignableStudent]) -> list[str]:
    return [student.name for student in students]


def test_students_come_nearest_first_with_the_reason_why_they_are_not_asked(town: Neighbourhood) -> None:
    elsewhere, asked, free = town.students(10, 20, 30)
    off_duty, far = town.student(40, on_duty=False), town.student(1200)
    unknown, busy = town.student(5, located=False), town.student(50)
    town.student(1, active=False)
    town.matching.assign(town.coordinator(), town.press(town.elder("Fatma Su")), busy.id)
    town.press(town.elder("Hatice Demir"))
    task_id = town.press()
    shown = [(one.student_id, one.obstacle, one.asked_before) for one in found(town, task_id)]
    assert shown == [
        (elsewhere.id, "BEING_ASKED", None),
        (asked.id, "ASKED_BEFORE", "PENDING"),
        (free.id, None, None),
        (off_duty.id, "OFF_DUTY", None),
        (busy.id, "HAS_A_TASK", None),
        (far.id, "TOO_FAR", None),
        (unknown.id, "NO_LOCATION", None),
    ]
    nearest, *_, last = found(town, task_id)
    assert nearest.distance_m == pytest.approx(10, abs=1e-3)
    assert (last.distance_m, last.phone, last.on_duty) == (None, "+905551112233", True)
    assert names(found(town, task_id, limit=2)) == names(found(town, task_id))[:2]


@pytest.mark.parametrize("environ", [NO_LIMITS | {"cancels_per_student": 2}])
def test_who_was_cancelled_on_too_often_is_left_in_peace(town: Neighbourhood) -> None:
    elder, student = town.elder(), town.student(10)
    for _ in range(2):
        town.matching.cancel(elder, town.press(elder))
    [shown] = found(town, town.press(elder))
    assert (shown.student_id, shown.obstacle) == (student.id, "LEFT_IN_PEACE")


def test_search_finds_folded_names_and_numbers(town: Neighbourhood) -> None:
    for name in ("Işıl Şahin", "IŞIL ÖĞÜT", "Çağla İnce", "Ayşe-Nur Ünlü"):
        town.student(10, name)
    task_id = town.press(town.elder("Işıl Yılmaz"))
    expected = {
        "isil": ["Işıl Şahin", "IŞIL ÖĞÜT"],
        "IŞIL sah": ["Işıl Şahin"],
        "ogut": ["IŞIL ÖĞÜT"],
        "ince": ["Çağla İnce"],
        "nur": ["Ayşe-Nur Ünlü"],
        "hin": [],
        "0555 111": ["Işıl Şahin", "IŞIL ÖĞÜT", "Çağla İnce", "Ayşe-Nur Ünlü"],
        "nur 2233": ["Ayşe-Nur Ünlü"],
        "'; DROP": [],
    }
    assert {typed: sorted(names(found(town, task_id, typed))) for typed in expected} == {
        typed: sorted(names) for typed, names in expected.items()
    }


def test_sql_folds_as_python_does(town: Neighbourhood) -> None:
    name = "Işıl İĞÜŞÖÇ ığüşöç Âdem-Nur O’Brien José Łukasz Đặng"
    town.run("INSERT INTO users (role, name, phone) VALUES ('ELDER', :name, '+90 555 010 20 30')", name=name)
    words = town.one(f"SELECT tsvector_to_array({WORDS}) AS words FROM users").words
    assert set(words) == {*fold(name).split(), "905550102030", "5550102030", "0102030", "2030"}


def test_an_institution_finds_its_own_students_and_those_whom_its_tasks_have_named(town: Neighbourhood) -> None:
    scope = StaffScope(1, 1)
    named, *_ = (town.student(metres, name) for metres, name in ((10, "Ad"), (20, "Ef"), (30, "Su")))
    mine = town.student(300, "Can Ak")
    town.run("UPDATE users SET institution_id = 1 WHERE id = :id", id=mine.id)
    task_id = town.press(town.elder(institution_id=1))
    assert town.asked(task_id) == named.id
    assert names(found(town, task_id, scope=scope)) == ["Ad", "Can Ak"]
    assert names(found(town, task_id, "can", scope)) == ["Can Ak"]
    assert names(found(town, task_id, "ef", scope)) == []
    assert names(found(town, task_id, "ef")) == ["Ef"]
    with town.matching.stores.reading() as store:
        # The two who are looked at first are not enough.
        students = store.assignable(scope, task_id, None, town.matching.rules, 50, examined=2)
        assert names(students) == ["Ad", "Can Ak"]
    for caller_scope, unknown in ((StaffScope(1, 2), task_id), (ALL, uuid7())):
        with pytest.raises(TaskNotFound):
            found(town, unknown, scope=caller_scope)


def test_search_uses_its_index(town: Neighbourhood) -> None:
    """The planner compares the expression of the statement with that of the index."""
    search = search_people("isil 555")
    with town.db.transaction() as conn:
        conn.execute(text("SET LOCAL enable_seqscan = off"))
        plan = conn.execute(text(f"EXPLAIN SELECT id FROM users WHERE {search.condition}"), search.values).scalars()
        assert "users_search_idx" in "\n".join(plan)
