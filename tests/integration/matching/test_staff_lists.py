"""The lists and the map in which coordinators find students and elders."""

from app.matching.contract import ListedStudent, MapBox, PeoplePage, StudentMap
from app.users.contract import StaffScope, search_people
from app.users.models import Caller
from tests.support.matching import SPOT, Neighbourhood

ALL, OWN = StaffScope(1), StaffScope(1, 1)
AROUND = MapBox(SPOT.lat - 0.05, SPOT.lon - 0.05, SPOT.lat + 0.05, SPOT.lon + 0.05)


def page(search: str | None = None, cursor: str | None = None, limit: int = 50) -> PeoplePage:
    return PeoplePage(None if search is None else search_people(search), cursor, limit)


def join(town: Neighbourhood, *people: Caller) -> None:
    town.run("UPDATE users SET institution_id = 1 WHERE id = ANY(:ids)", ids=[person.id for person in people])


def ids(people: object) -> list[int]:
    found = people.students if isinstance(people, StudentMap) else people.items  # type: ignore[attr-defined]
    return [person.id for person in found]


def test_students_are_listed_newest_first_with_what_they_are_doing(town: Neighbourhood) -> None:
    asked, busy = town.student(10, "Çiçek Işık", completed=3), town.student(20)
    off_duty = town.student(30, on_duty=False, months_ago=1, completed=2)
    gone, unknown = town.student(40, active=False), town.student(50, located=False)
    town.matching.set_duty_of(ALL, off_duty.id, False)
    town.matching.assign(town.coordinator(), town.press(), busy.id)
    assert town.asked(town.press(town.elder("Fatma Su"))) == asked.id
    shown = {student.id: student for student in town.matching.student_list(ALL, page()).items}
    assert list(shown) == [unknown.id, gone.id, off_duty.id, busy.id, asked.id]
    assert [student.busy for student in shown.values()] == [False, False, False, True, True]
    assert [student.active for student in shown.values()] == [True, False, True, True, True]
    assert [student.suspended for student in shown.values()] == [False, False, True, False, False]
    assert [student.location is None for student in shown.values()] == [True, False, False, False, False]
    first = shown[asked.id]
    assert isinstance(first, ListedStudent)
    assert (first.name, first.phone, first.completed_this_month) == ("Çiçek Işık", "+905551112233", 3)
    assert shown[off_duty.id].completed_this_month == 0, "the count is of another month"
    assert ids(town.matching.student_list(ALL, page(), on_duty=True)) == [unknown.id, busy.id, asked.id]
    assert ids(town.matching.student_list(ALL, page(), on_duty=False)) == [gone.id, off_duty.id]
    assert ids(town.matching.student_list(ALL, page(), suspended=True)) == [off_duty.id]
    assert ids(town.matching.student_list(ALL, page("cicek"), on_duty=False)) == []
    assert ids(town.matching.student_list(ALL, page("cicek"), on_duty=True)) == [asked.id]


def test_lists_have_pages_also_while_searching(town: Neighbourhood) -> None:
    elders = [town.elder(f"Işıl {number}") for number in range(3)]
    for search in (None, "isil"):
        first = town.matching.elder_list(ALL, page(search, limit=2))
        assert ids(first) == [elders[2].id, elders[1].id]
        second = town.matching.elder_list(ALL, page(search, first.next_cursor, limit=2))
        assert (ids(second), second.next_cursor) == ([elders[0].id], None)


def test_elders_are_listed_with_their_open_task(town: Neighbourhood) -> None:
    town.student(10)
    mine = town.elder("Ayşe Yılmaz", institution_id=1)
    other, gone = town.elder("Fatma Su", institution_id=2), town.elder("Emine Taş", institution_id=1)
    town.matching.set_active(gone.id, False)
    task_id = town.press(mine)
    [shown] = town.matching.elder_list(OWN, page()).items
    assert (shown.id, shown.open_task_id, shown.location) == (mine.id, task_id, SPOT)
    assert ids(town.matching.elder_list(ALL, page())) == [other.id, mine.id]
    assert ids(town.matching.elder_list(OWN, page("fatma"))) == []


def test_an_institution_sees_its_students_and_those_whom_its_open_tasks_need(town: Neighbourhood) -> None:
    own, needed, stranger = town.student(500, "Can Ak"), town.student(10, "Ada Su"), town.student(20, "Efe Su")
    join(town, own)
    elder = town.elder(institution_id=1)
    other_task = town.press(town.elder("Fatma Su"))
    assert town.asked(other_task) == needed.id
    town.matching.reject(needed, other_task)
    assert town.asked(other_task) == stranger.id
    task_id = town.press(elder)
    assert town.asked(task_id) == needed.id

    def seen() -> list[list[int]]:
        return [
            ids(town.matching.student_list(OWN, page())),
            ids(town.matching.student_list(OWN, page("su"))),
            sorted(ids(town.matching.student_map(OWN, AROUND, 10)), reverse=True),
        ]

    assert seen() == [[needed.id, own.id], [needed.id], [needed.id, own.id]]
    town.matching.accept(needed, task_id)
    assert seen() == [[needed.id, own.id], [needed.id], [needed.id, own.id]]
    town.matching.cancel(elder, task_id)
    assert seen() == [[own.id], [], [own.id]], "the task has ended"
    assert len(ids(town.matching.student_list(ALL, page()))) == 3


def test_map_shows_students_in_the_box_those_on_duty_first(town: Neighbourhood) -> None:
    off_duty, available, busy = town.student(10, on_duty=False), town.student(20), town.student(30)
    town.student(40, active=False)
    town.student(50, located=False)
    town.student(20_000)
    town.matching.assign(town.coordinator(), town.press(), busy.id)
    task_id = town.press(town.elder("Fatma Su"))
    shown = town.matching.student_map(ALL, AROUND, 10)
    assert [(one.id, one.on_duty, one.busy, one.offered_task_id) for one in shown.students] == [
        (available.id, True, True, task_id),
        (busy.id, True, True, None),
        (off_duty.id, False, False, None),
    ]
    assert not shown.truncated
    truncated = town.matching.student_map(ALL, AROUND, 2)
    assert (ids(truncated), truncated.truncated) == ([available.id, busy.id], True)
    join(town, off_duty, available, busy)
    own = town.matching.student_map(OWN, AROUND, 10)
    assert sorted(ids(own)) == sorted(ids(shown))
    assert {one.id: (one.busy, one.offered_task_id) for one in own.students}[available.id] == (True, None)
    town.run("UPDATE users SET institution_id = 2 WHERE id = :id", id=busy.id)
    assert ids(town.matching.student_map(OWN, AROUND, 1)) == [available.id]


def test_map_of_a_large_institution_is_read_by_place(town: Neighbourhood) -> None:
    own, needed, _ = town.student(500), town.student(10), town.student(20)
    join(town, own)
    town.press(town.elder(institution_id=1))
    with town.matching.stores.reading() as store:
        by_institution = store.student_map(OWN, AROUND, 10)
        assert store.student_map(OWN, AROUND, 10, few=0) == by_institution
    assert ids(by_institution) == [own.id, needed.id]
