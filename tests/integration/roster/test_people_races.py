"""People enter and leave beside others: two workers, a list that changes again, people who press and accept."""

import threading

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.matching.contract import NewTask
from app.users import service as users
from app.users.models import Caller, Role
from tests.support import mishaps
from tests.support.depth import size
from tests.support.listed_people import ListedPeople, row
from tests.support.matching import SPOT, Neighbourhood, at_once, eventually

PEOPLE = [f"1{number:010}" for number in range(300)]


def rows_of(people: list[str], name: str = "Ayşe Yılmaz") -> dict[str, dict]:
    return {one: row(f"{name} {one}", f"+9{one}", home=SPOT) for one in people}


def elder_of(elders: ListedPeople, identifier: str) -> Caller:
    return Caller(elders.user_id(identifier), Role.ELDER, "", "tr", 34)


def test_two_workers_share_the_queue(elders: ListedPeople, town: Neighbourhood) -> None:
    elders.publish(rows_of(PEOPLE))
    reports = at_once(elders.apply, elders.apply)
    assert sum(report.created for report in reports) == len(PEOPLE)
    assert town.one("SELECT count(*) FROM users").count == len(PEOPLE)
    elders.publish(dict.fromkeys(PEOPLE))
    reports = at_once(elders.apply, elders.apply)
    assert sum(report.deactivated for report in reports) == len(PEOPLE)
    assert (elders.queued(), town.one("SELECT count(*) FROM users WHERE active").count) == ([], 0)


def test_the_newest_list_wins_whatever_comes_in_between(elders: ListedPeople, town: Neighbourhood) -> None:
    """Lists change all the time while two workers apply them."""
    ended = threading.Event()

    def publish() -> None:
        for number in range(size(suite=8, deep=60)):
            elders.publish(rows_of(PEOPLE[:60], f"Ad {number}") if number % 3 else dict.fromkeys(PEOPLE[:60]))
        elders.publish(dict.fromkeys(PEOPLE[:20]) | rows_of(PEOPLE[20:60], "En Yeni"))
        ended.set()

    def work() -> None:
        while not ended.is_set():
            elders.apply()

    at_once(publish, work, work)
    elders.apply()
    assert elders.queued() == []
    shown = town.all(
        "SELECT u.name, u.active FROM roster_people p JOIN users u ON u.id = p.user_id ORDER BY identifier"
    )
    assert [one.active for one in shown] == [False] * (len(shown) - 40) + [True] * 40
    assert {one.name.rpartition(" ")[0] for one in shown[-40:]} == {"En Yeni"}
    assert town.one("SELECT count(*) FROM users").count == len(shown)


def test_a_run_that_is_not_committed_is_not_waited_for(elders: ListedPeople) -> None:
    elders.publish(rows_of(PEOPLE[:2]))
    with elders.db.transaction() as conn:
        elders.publish_in(conn, {PEOPLE[0]: None})
        assert elders.apply().created == 1
        assert elders.queued() == [PEOPLE[0]]
    assert elders.apply().created == 0
    assert elders.queued() == []


def test_whoever_is_locked_stays_in_the_queue(elders: ListedPeople, town: Neighbourhood) -> None:
    elders.follow(rows_of(PEOPLE[:2]))
    elders.publish(rows_of(PEOPLE[:2], "Yeni Ad"))
    with town.db.transaction() as conn:
        conn.execute(text("SELECT FROM users WHERE id = :id FOR SHARE"), {"id": elders.user_id(PEOPLE[0])})
        report = elders.apply()
        assert (report.updated, report.left, elders.queued()) == (1, 1, PEOPLE[:1])
    assert elders.apply().updated == 1


@pytest.mark.parametrize("changes", ["the user", "the list"])
def test_what_changes_between_reading_and_writing_is_not_overwritten(
    services: Services, elders: ListedPeople, town: Neighbourhood, changes: str
) -> None:
    """A worker stands still before each of its statements while somebody changes the phone, or the list the name."""
    anybody = town.coordinator()
    for passage in range(3, 7):
        identifier = f"{passage:011}"
        elders.follow({identifier: row("Eski Ad", "+905550000001")})
        elders.publish({identifier: row("Yeni Ad", "+905550000002")})
        user_id = elders.user_id(identifier)
        step = mishaps.Step(services.settings, f"sql.statement=stop@{passage}", "apply_elders", anybody, None, "")
        with step.standing_still() as is_stopped:
            assert is_stopped
            before = town.one("SELECT name FROM users WHERE id = :id", id=user_id).name
            if changes == "the user":
                with town.db.transaction() as conn:
                    users.patch_user(conn, user_id, {"phone": "+905559999999"})
            else:
                elders.publish({identifier: row("En Yeni Ad", "+905550000003")})
        step.end()
        elders.apply()
        found = town.one("SELECT name, phone FROM users WHERE id = :id", id=user_id)
        wanted = ("Yeni Ad", "+905559999999") if changes == "the user" else ("En Yeni Ad", "+905550000003")
        assert found == wanted
        if before == "Yeni Ad":
            return
    raise AssertionError("the worker was never stopped after its last write")


def test_presses_and_accepts_beside_removals_end_well(elders: ListedPeople, town: Neighbourhood) -> None:
    """Each elder who presses while the list takes them off is refused, or their task is closed."""
    rounds = size(suite=3, deep=30)
    students = town.students(*range(10, 80, 10))
    for _ in range(rounds):
        people = PEOPLE[:6]
        elders.follow(rows_of(people))
        callers = [elder_of(elders, one) for one in people]
        elders.publish(dict.fromkeys(people))

        def press(caller: Caller) -> None:
            town.matching.press(caller, NewTask(caller.id))

        def accept(student: Caller) -> None:
            offer = town.matching.current_offer(student)
            if offer is not None:
                town.matching.accept(student, offer.task_id)

        calls = [lambda caller=caller: press(caller) for caller in callers]
        calls += [lambda student=student: accept(student) for student in students]
        calls += [lambda student=student: town.matching.set_availability(student, False) for student in students[:2]]
        at_once(elders.apply, *calls, elders.apply)
        elders.apply()
        assert elders.queued() == []
        assert town.all("SELECT id FROM tasks WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED')") == []
        assert town.all("SELECT id FROM offers WHERE state = 'PENDING'") == []
        assert town.all("SELECT id FROM students WHERE open_task_id IS NOT NULL") == []
        for student in students[:2]:
            town.matching.set_availability(student, True)


def test_students_who_are_asked_while_they_leave_lose_their_offers(students: ListedPeople, town: Neighbourhood) -> None:
    people = PEOPLE[:8]
    for number in range(size(suite=3, deep=30)):
        students.follow({one: row(f"Öğrenci {one}", f"+9{one}") for one in people})
        for one in people:
            town.matching.set_location(students.user_id(one), SPOT)
        callers = [Caller(students.user_id(one), Role.STUDENT, "", "tr", None) for one in people]
        elders = [town.elder(f"Elder {number} {index}") for index in range(4)]
        students.publish(dict.fromkeys(people))

        def accept(student: Caller) -> None:
            offer = town.matching.current_offer(student)
            if offer is not None:
                town.matching.accept(student, offer.task_id)

        calls = [lambda elder=elder: town.press(elder) for elder in elders]
        calls += [lambda caller=caller: accept(caller) for caller in callers]
        at_once(students.apply, *calls)
        students.apply()
        assert students.queued() == []
        assert town.all("SELECT id FROM offers WHERE state IN ('PENDING', 'ACCEPTED')") == []
        assert town.all("SELECT id FROM students WHERE active OR open_task_id IS NOT NULL") == []


def test_a_worker_that_is_killed_at_any_statement_leaves_the_rest_queued(
    services: Services, elders: ListedPeople, town: Neighbourhood
) -> None:
    """In each round one enters, one changes, one leaves, and one leaves with a task on the way."""
    coordinator, (student,) = town.coordinator(institution_id=34), town.students(100)
    for passage in (3, 6, 8, 10, 12, 15, 20, 30):
        new, changed, gone, busy = (f"{passage:04}{number:07}" for number in range(4))
        elders.follow(rows_of([changed, gone, busy]))
        task_id = town.press(elder_of(elders, busy))
        town.matching.accept(student, task_id)
        elders.publish({gone: None, busy: None, **rows_of([new, changed], "Yeni Ad")})
        fault = f"sql.statement=kill@{passage}"
        died = mishaps.Step(services.settings, fault, "apply_elders", coordinator, None, "").end().died
        eventually(lambda: elders.apply().left == 0 and not elders.queued(), "the rest is applied")
        found = town.all(
            "SELECT identifier, name, active FROM roster_people JOIN users ON id = user_id"
            " WHERE identifier LIKE :prefix ORDER BY identifier",
            prefix=f"{passage:04}%",
        )
        assert [(one.name.startswith("Yeni"), one.active) for one in found] == [
            (True, True),
            (True, True),
            (False, False),
            (False, False),
        ]
        assert town.status(task_id) == "CANCELLED"
        assert len(town.told(coordinator, "ELDER_LEFT", task_id)) == 1
        if not died:
            break
    assert (
        town.one("SELECT count(*) FROM users WHERE role = 'ELDER'").count
        == town.one("SELECT count(*) FROM roster_people").count
    )
