"""People enter, change and leave as the lists say."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from app.matching.contract import LeftBehind
from app.roster.contract import PeopleReport
from app.roster.kinds.kind import Kind
from app.roster.service import removals_would_end
from app.users import service as users
from app.users.models import Caller, Role
from tests.support.listed_people import ELDERS, STUDENTS, ListedPeople, row
from tests.support.matching import SPOT, Neighbourhood

A, B = "10000000146", "10000000214"
PHONE, OWN_PHONE = "+905550000001", "+905559999999"


def without_time(report: PeopleReport) -> PeopleReport:
    return replace(report, longest_ms=0.0)


def user_of(listed: ListedPeople, identifier: str = A) -> users.User:
    with listed.db.transaction() as conn:
        return users.get_user(conn, listed.user_id(identifier))


def caller_of(listed: ListedPeople, identifier: str = A) -> Caller:
    user = user_of(listed, identifier)
    return Caller(user.id, user.role, user.name, user.locale, user.institution_id)


def patch(listed: ListedPeople, identifier: str = A, **changes: Any) -> None:
    with listed.db.transaction() as conn:
        users.patch_user(conn, listed.user_id(identifier), changes)


# ---- entering ----


def test_an_elder_enters_with_what_the_list_has(elders: ListedPeople) -> None:
    report = elders.follow({A: row("İpek Işık", home=SPOT, institutions=("340", "34", "kurum"))})
    assert without_time(report) == PeopleReport(created=1)
    user = user_of(elders)
    assert (user.role, user.name, user.phone, user.locale) == (Role.ELDER, "İpek Işık", PHONE, "tr")
    assert (user.location, user.institution_id, user.active) == (SPOT, 34, True)
    assert elders.queued() == []


def test_an_elder_without_a_place_is_taken_and_reported(elders: ListedPeople) -> None:
    assert without_time(elders.follow({A: row()})) == PeopleReport(created=1, without_place=1)
    assert user_of(elders).location is None


def test_a_student_enters_on_duty_and_without_a_location(students: ListedPeople, town: Neighbourhood) -> None:
    assert without_time(students.follow({A: row(locale="en")})) == PeopleReport(created=1)
    user = user_of(students)
    assert (user.role, user.locale, user.on_duty, user.location, user.active) == (Role.STUDENT, "en", True, None, True)
    assert town.one("SELECT active, available FROM students") == (True, False)


def test_a_person_who_was_entered_by_hand_is_bound(elders: ListedPeople, town: Neighbourhood) -> None:
    by_hand = town.elder("ışıl IRMAK", SPOT, phone=PHONE)
    town.elder("Işıl Irmak", phone=None)
    assert without_time(elders.follow({A: row("Işıl Irmak", PHONE)})) == PeopleReport(bound=1)
    assert elders.user_id(A) == by_hand.id
    assert (user_of(elders).name, user_of(elders).location) == ("Işıl Irmak", SPOT)


@pytest.mark.parametrize("others", [("Ayşe Yılmaz", "AYŞE YILMAZ"), ("Aysel Yılmaz",)], ids=["two", "another name"])
def test_in_doubt_a_new_user_is_created(elders: ListedPeople, town: Neighbourhood, others: tuple[str, ...]) -> None:
    known = [town.elder(name, phone=PHONE).id for name in others]
    assert elders.follow({A: row()}).created == 1
    assert elders.user_id(A) not in known


def test_a_phone_that_very_many_have_holds_nobody_up(elders: ListedPeople, town: Neighbourhood) -> None:
    with elders.db.transaction() as conn:
        many = "INSERT INTO users (role, name, phone) SELECT 'ELDER', 'Kişi', :phone FROM generate_series(1, 30000)"
        conn.execute(text(many), {"phone": PHONE})
    elders.publish({A: row(), B: row()})
    assert elders.apply(progress=fails_after(50)).created == 2
    assert elders.queued() == []


def fails_after(calls: int) -> Any:
    left = iter(range(calls))
    return lambda *_: next(left)


def test_nobody_of_another_role_or_on_another_row_is_bound(
    elders: ListedPeople, students: ListedPeople, town: Neighbourhood
) -> None:
    students.follow({A: row()})
    elders.follow({A: row()})
    report = elders.follow({B: row()})
    assert report.created == 1
    assert len({students.user_id(A), elders.user_id(A), elders.user_id(B)}) == 3


def test_a_student_of_two_universities_is_one_person(students: ListedPeople) -> None:
    students.follow({A: row(institutions=("20", "10"))})
    assert user_of(students).institution_id == 10
    assert without_time(students.follow({A: row(institutions=("20",))})) == PeopleReport(updated=1)
    assert (user_of(students).institution_id, user_of(students).active) == (20, True)
    assert without_time(students.follow({A: None})) == PeopleReport(deactivated=1)
    assert not user_of(students).active


# ---- changing: docs/roster.md, "Which side wins" ----


def test_the_list_wins_name_and_institution(elders: ListedPeople) -> None:
    elders.follow({A: row("Ayşe Yılmaz", institutions=("34",))})
    patch(elders, name="Ayşe Hanım", institution_id=6)
    elders.follow({A: row("Ayşe Kaya", institutions=("35",))})
    assert (user_of(elders).name, user_of(elders).institution_id) == ("Ayşe Kaya", 35)


def test_a_phone_and_a_locale_follow_the_list_until_somebody_changes_them(elders: ListedPeople) -> None:
    elders.follow({A: row(phone=PHONE)})
    elders.follow({A: row(phone="+905550000002", locale="en")})
    assert (user_of(elders).phone, user_of(elders).locale) == ("+905550000002", "en")
    patch(elders, phone=OWN_PHONE, locale="tr")
    report = elders.follow({A: row("Ayşe Kaya", phone="+905550000003")})
    assert (user_of(elders).phone, user_of(elders).locale, report.kept) == (OWN_PHONE, "tr", 1)


def test_a_home_moves_with_the_list_until_somebody_moves_it(elders: ListedPeople, town: Neighbourhood) -> None:
    places = [town.spot_at(metres) for metres in (100, 200, 300)]
    elders.follow({A: row(home=SPOT)})
    assert elders.follow({A: row("Ayşe Kaya")}).without_place == 0
    assert user_of(elders).location == SPOT
    elders.follow({A: row(home=places[0])})
    assert user_of(elders).location == places[0]
    patch(elders, home=places[1])
    assert elders.follow({A: row(home=places[2])}).kept == 1
    assert user_of(elders).location == places[1]


def test_counts_and_history_stay_and_devices_go(students: ListedPeople, town: Neighbourhood) -> None:
    students.follow({A: row()})
    student = caller_of(students)
    with town.db.transaction() as conn:
        device = users.DeviceRegistration("phone", "token", users.Platform.ANDROID)
        users.put_device(conn, student.id, device)
    town.matching.set_location(student.id, SPOT)
    task_id = town.press()
    town.matching.accept(student, task_id)
    town.matching.start(student, task_id)
    town.matching.complete(student, task_id)
    students.follow({A: None})
    students.follow({A: row("Ayşe Kaya", phone="+905550000002")})
    assert students.user_id(A) == student.id
    kept = "SELECT completed, (SELECT count(*) FROM devices), (SELECT count(*) FROM offers) FROM students"
    assert town.one(kept) == (1, 0, 1)


def test_whom_an_admin_deactivated_only_a_return_brings_back(students: ListedPeople, town: Neighbourhood) -> None:
    students.follow({A: row()})
    town.matching.set_active(students.user_id(A), False)
    students.follow({A: row("Ayşe Kaya")})
    assert (user_of(students).name, user_of(students).active) == ("Ayşe Kaya", False)
    students.follow({A: None})
    assert without_time(students.follow({A: row("Ayşe Kaya")})) == PeopleReport(reactivated=1)
    assert user_of(students).active
    assert town.one("SELECT active FROM students").active


def test_a_row_that_says_nothing_new_changes_nothing(elders: ListedPeople, town: Neighbourhood) -> None:
    elders.follow({A: row(home=SPOT)})
    before = town.one("SELECT xmin, * FROM users")
    assert without_time(elders.follow({A: row(home=SPOT)})) == PeopleReport()
    assert town.one("SELECT xmin, * FROM users") == before
    assert elders.queued() == []


def test_several_changes_before_the_people_follow_are_one(students: ListedPeople, town: Neighbourhood) -> None:
    students.publish({A: row()})
    students.publish({A: None})
    assert without_time(students.apply()) == PeopleReport()
    assert town.all("SELECT id FROM users") == []
    students.follow({A: row()})
    students.publish({A: None})
    students.publish({A: row("Ayşe Kaya")})
    assert without_time(students.apply()) == PeopleReport(updated=1)


# ---- leaving ----


def test_the_task_of_an_elder_who_left_is_closed_and_the_others_are_told(
    elders: ListedPeople, town: Neighbourhood
) -> None:
    coordinator = town.coordinator(institution_id=34)
    town.coordinator("Başka Kurum", institution_id=35)
    (student,) = town.students(100)
    elders.follow({A: row("Şükrü Iğdır", home=SPOT)})
    elder = caller_of(elders)
    town.register_phone(elder)
    task_id = town.press(elder)
    town.matching.accept(student, task_id)
    assert without_time(elders.follow({A: None})) == PeopleReport(deactivated=1, tasks_closed=1)
    assert town.all("SELECT device_id FROM devices") == []
    assert town.status(task_id) == "CANCELLED"
    assert [one.recipient_user_id for one in town.told(kind="ELDER_LEFT")] == [coordinator.id]
    assert town.bodies(coordinator) == [
        "Şükrü Iğdır artık listede olmadığı için açık talebi kapatıldı; telefon: +905550000001."
    ]
    assert town.bodies(student, "CANCELLED") == ["Talep iptal edildi."]
    assert town.bodies(elder, "CANCELLED") == [], "somebody who was deactivated gets no more messages"
    assert town.keys(task_id).nothing
    assert elders.queued() == []


def test_the_offer_for_an_elder_who_left_is_withdrawn(elders: ListedPeople, town: Neighbourhood) -> None:
    (student,) = town.students(100)
    elders.follow({A: row(home=SPOT)})
    task_id = town.press(caller_of(elders))
    report = elders.follow({A: None})
    assert without_time(report) == PeopleReport(deactivated=1, tasks_closed=1, offers_withdrawn=1)
    assert town.states(task_id) == [(student.id, "WITHDRAWN", "CANCELLED")]


def test_for_the_task_of_a_student_who_left_the_search_begins_again(
    students: ListedPeople, town: Neighbourhood
) -> None:
    students.follow({A: row()})
    student = caller_of(students)
    town.matching.set_location(student.id, town.spot_at(100))
    task_id = town.press()
    town.matching.accept(student, task_id)
    (second,) = town.students(200)
    assert without_time(students.follow({A: None})) == PeopleReport(deactivated=1, searched_again=1)
    assert town.asked(task_id) == second.id


def test_the_next_student_is_asked_when_the_first_has_left(students: ListedPeople, town: Neighbourhood) -> None:
    students.follow({A: row()})
    town.matching.set_location(students.user_id(A), town.spot_at(100))
    (second,) = town.students(200)
    task_id = town.press()
    assert town.asked(task_id) == students.user_id(A)
    assert without_time(students.follow({A: None})) == PeopleReport(deactivated=1, offers_withdrawn=1)
    assert town.asked(task_id) == second.id
    assert not town.one("SELECT active FROM students WHERE id = :id", id=students.user_id(A)).active


def test_a_waiting_task_asks_a_student_who_returns(students: ListedPeople, town: Neighbourhood) -> None:
    students.follow({A: row()})
    town.matching.set_location(students.user_id(A), town.spot_at(100))
    students.follow({A: None})
    (busy,) = town.students(150)
    assert town.asked(town.press()) == busy.id
    task_id = town.press(town.elder("Bekleyen Hanım"))
    assert town.task(task_id).waiting
    students.follow({A: row()})
    assert town.asked(task_id) == students.user_id(A)


# ---- a dry run ----


@pytest.mark.parametrize(
    ("kind", "hit"),
    [(ELDERS, LeftBehind(open_tasks=2, live_offers=1)), (STUDENTS, LeftBehind(open_tasks=1, live_offers=1))],
    ids=["elders", "students"],
)
def test_a_dry_run_tells_what_removals_would_end(
    services: Any, town: Neighbourhood, kind: Kind, hit: LeftBehind
) -> None:
    elders, students = ListedPeople(services, ELDERS), ListedPeople(services, STUDENTS)
    far = town.spot_at(50_000)
    elders.follow({A: row(home=SPOT), B: row("Başka Biri", "+905550000007", home=far)})
    students.follow({A: row(), B: row("Başka Öğrenci", "+905550000008")})
    town.matching.set_location(students.user_id(A), SPOT)
    town.matching.set_location(students.user_id(B), far)
    town.matching.accept(caller_of(students), town.press(caller_of(elders)))
    town.press(caller_of(elders, B))
    with town.db.transaction() as conn:
        conn.execute(text("CREATE TEMPORARY TABLE _changes (identifier text, change_type smallint) ON COMMIT DROP"))
        conn.execute(text("INSERT INTO _changes VALUES (:a, 3), (:b, 3), ('unknown', 3)"), {"a": A, "b": B})
        assert removals_would_end(conn, kind) == hit
        conn.execute(text("UPDATE _changes SET change_type = 2"))
        assert removals_would_end(conn, kind) == LeftBehind()
