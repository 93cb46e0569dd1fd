"""Whole courses of a task, from the press to its end, through the public functions of `Matching`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from app.matching.contract import NewTask
from app.matching.rules.errors import (
    NotAssigned,
    OfferAccepted,
    OfferExpired,
    OfferRejected,
    OfferReleased,
    TaskNotFound,
)
from app.matching.rules.states import IllegalTaskTransition
from app.users.models import Role
from tests.support.matching import Neighbourhood

FOUND_NOBODY = "Maalesef şu an uygun öğrenci bulunamadı."


def test_nearest_student_gets_an_offer_with_a_deadline(town: Neighbourhood) -> None:
    ahmet, _ = town.students(100, 200)
    task_id = town.press()
    [offer] = town.told(ahmet)
    assert offer.body == "Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var."
    assert offer.metadata["data"] | {"notificationId": ""} == {
        "type": "OFFER",
        "taskId": str(task_id),
        "deadline": town.task(task_id).next_step_at.isoformat().replace("+00:00", "Z"),
        "notificationId": "",
    }
    assert offer.expires_at == town.task(task_id).next_step_at
    assert (offer.priority, offer.task_id) == ("URGENT", task_id)
    [view] = town.offers(task_id)
    assert view.deadline is not None and view.offered_at is not None
    assert view.deadline - view.offered_at == timedelta(seconds=600)
    assert (view.rank, view.completed_this_month, view.state) == (1, 0, "PENDING")
    assert view.distance_m == pytest.approx(100, abs=0.001)


def test_press_is_kept_although_its_first_offer_fails(town: Neighbourhood) -> None:
    [ali] = town.students(100)
    with plan_out_of_order(town, "matching.offer"):
        task_id = town.press()
    assert (town.task(task_id).status, town.offers(task_id), town.told(ali)) == ("PENDING", [], [])
    with town.matching.stores.reading() as store:
        assert store.due_tasks(10) == [task_id], "the matcher makes the offer"
    town.advance(task_id)
    assert town.asked(task_id) == ali.id


REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON actions FOR EACH ROW EXECUTE FUNCTION refuse()
"""
CHECK_VIOLATION, DISK_FULL = "23514", "53100"


@pytest.mark.parametrize("code", [CHECK_VIOLATION, DISK_FULL])
def test_press_is_kept_although_the_rows_of_its_offer_are_refused_at_the_commit(town: Neighbourhood, code: str) -> None:
    students = town.students(*range(100, 600, 100))
    for elder in town.elders(4):
        town.press(elder)
    # On another connection, so that the one of the press keeps what is prepared on it.
    with town.db.reading():
        town.run(REFUSE.format(code=code))
    try:
        task_id = town.press()
    finally:
        town.run("DROP FUNCTION refuse() CASCADE")
    assert (town.task(task_id).status, town.offers(task_id)) == ("PENDING", [])
    town.advance(task_id)
    assert town.asked(task_id) == students[-1].id


@contextmanager
def plan_out_of_order(town: Neighbourhood, key: str) -> Iterator[None]:
    """Whoever requests an action by this plan fails."""

    rename = "UPDATE action_plans SET key = :new WHERE key = :old"
    town.run(rename, old=key, new="elsewhere")
    try:
        yield
    finally:
        town.run(rename, old="elsewhere", new=key)


def test_scenario_a_the_asked_student_accepts(town: Neighbourhood) -> None:
    ahmet, _ = town.student(100, "Ahmet Çelik"), town.student(200)
    elder = town.elder()
    task_id = town.press(elder)
    view = town.matching.accept(ahmet, task_id)
    assert (view.status, view.student and view.student.id) == ("ASSIGNED", ahmet.id)
    assert town.bodies(elder) == ["Ahmet yola çıktı!"]
    town.matching.start(ahmet, task_id)
    view = town.matching.complete(ahmet, task_id)
    assert view.status == "COMPLETED"
    assert [row.kind for row in town.told(elder)] == ["ON_THE_WAY", "STARTED", "COMPLETED"]
    assert town.asked_in_order(task_id) == [ahmet.id]


def test_scenario_b_a_rejection_asks_the_next_student(town: Neighbourhood) -> None:
    ahmet, berat = town.student(100, "Ahmet Çelik"), town.student(200, "Berat Şahin")
    elder = town.elder()
    task_id = town.press(elder)
    town.matching.reject(ahmet, task_id)
    assert town.states(task_id) == [(ahmet.id, "REJECTED", None), (berat.id, "PENDING", None)]
    assert len(town.told(berat, "OFFER")) == 1
    town.matching.accept(berat, task_id)
    assert town.bodies(elder) == ["Berat yola çıktı!"]


def test_scenario_c_an_expiry_asks_the_next_student(town: Neighbourhood) -> None:
    ahmet, berat = town.students(100, 200)
    task_id = town.press()
    town.advance(task_id)
    assert town.asked(task_id) == ahmet.id, "the offer expired before its deadline"
    town.expire(task_id)
    assert town.states(task_id) == [(ahmet.id, "EXPIRED", None), (berat.id, "PENDING", None)]
    town.advance(task_id)
    assert town.asked_in_order(task_id) == [ahmet.id, berat.id], "the next student was asked twice"


def test_exhausted_search_notifies_the_elder_and_a_coordinator(town: Neighbourhood) -> None:
    coordinator, elder = town.coordinator(), town.elder("Ayşe Yılmaz", phone="+905550000001")
    ahmet, berat = town.students(100, 200)
    task_id = town.press(elder)
    town.expire(task_id)
    town.matching.reject(berat, task_id)
    assert town.status(task_id) == "TIMED_OUT"
    assert town.bodies(elder) == [FOUND_NOBODY]
    assert town.bodies(coordinator) == ["Öğrenci bulunamadı. Arayan: Ayşe Yılmaz, telefon: +905550000001."]
    assert [state for _, state, _ in town.states(task_id)] == ["EXPIRED", "REJECTED"]
    town.advance(task_id)
    assert len(town.told(elder)) == len(town.told(coordinator)) == 1
    assert town.matching.current_offer(ahmet) is None


def test_press_without_a_student_in_reach_times_out_at_once(town: Neighbourhood) -> None:
    coordinator, elder = town.coordinator(), town.elder(phone=None)
    town.student(1500)
    pressed = town.matching.press(elder, NewTask(elder.id), None)
    assert (pressed.created, pressed.task.status) == (True, "PENDING")
    assert town.status(pressed.task.id) == "TIMED_OUT"
    assert town.bodies(elder) == [FOUND_NOBODY]
    assert town.bodies(coordinator) == ["Öğrenci bulunamadı. Arayan: Ayşe Yılmaz, telefon: kayıtlı değil."]
    assert town.matching.press(elder, NewTask(elder.id), None).created, "the second press made no new task"


def test_coordinators_of_the_elders_institution_are_notified(town: Neighbourhood) -> None:
    mine, gone = town.coordinator(institution_id=7), town.coordinator(institution_id=7, active=False)
    other, nobodys = town.coordinator(institution_id=8), town.coordinator()
    admin = town.coordinator(role=Role.ADMIN)
    town.press(town.elder(institution_id=7))
    assert [len(town.told(person)) for person in (mine, gone, other, nobodys, admin)] == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("institution_id", [None, 7])
def test_if_the_elders_institution_has_no_coordinator_the_neighbours_are_not_notified(
    town: Neighbourhood, institution_id: int | None
) -> None:
    neighbour, gone = town.coordinator(institution_id=8), town.coordinator(institution_id=7, active=False)
    sees_all = [town.coordinator(), town.coordinator(role=Role.ADMIN, institution_id=8)]
    town.press(town.elder(institution_id=institution_id))
    assert [len(town.told(person)) for person in (neighbour, gone, *sees_all)] == [0, 0, 1, 1]


def test_admins_are_notified_if_there_is_no_coordinator(town: Neighbourhood) -> None:
    admin = town.coordinator(role=Role.ADMIN)
    town.press(town.elder(institution_id=7))
    assert len(town.told(admin, "NOBODY_FOUND_FOR")) == 1


def test_notice_is_in_the_language_of_its_reader(town: Neighbourhood) -> None:
    elder = town.elder(locale="en")
    town.press(elder)
    assert town.bodies(elder) == ["Unfortunately no student is available right now."]


def test_no_new_offer_after_the_search_limit(town: Neighbourhood) -> None:
    elder = town.elder()
    ahmet, _ = town.students(100, 200)
    task_id = town.press(elder)
    town.run("UPDATE tasks SET search_until = clock_timestamp() - interval '1 ms'")
    town.advance(task_id)
    assert (town.status(task_id), town.asked(task_id)) == ("PENDING", ahmet.id), (
        "the live offer ended at the search limit"
    )
    town.expire(task_id)
    assert town.status(task_id) == "TIMED_OUT"
    assert town.bodies(elder) == [FOUND_NOBODY]
    assert town.asked_in_order(task_id) == [ahmet.id]


def test_offer_made_before_the_search_limit_can_be_accepted_after_it(town: Neighbourhood) -> None:
    ahmet = town.student(100)
    task_id = town.press()
    town.run("UPDATE tasks SET search_until = clock_timestamp() - interval '1 ms'")
    assert town.matching.accept(ahmet, task_id).status == "ASSIGNED"


def test_new_search_has_the_full_search_limit(town: Neighbourhood) -> None:
    ahmet, berat = town.students(100, 200)
    task_id = town.press()
    town.matching.accept(ahmet, task_id)
    town.run("UPDATE tasks SET search_until = clock_timestamp() - interval '1 ms'")
    town.matching.withdraw(ahmet, task_id)
    assert town.asked(task_id) == berat.id
    assert town.one("SELECT search_until - clock_timestamp() AS left FROM tasks").left > timedelta(minutes=59)


def test_candidate_who_became_ineligible_is_skipped_for_good(town: Neighbourhood) -> None:
    asked, off_duty, moved, left, lost, last = town.students(10, 20, 30, 40, 50, 60)
    elder = town.elder()
    task_id = town.press(elder)
    town.matching.set_availability(off_duty, False)
    town.matching.set_location(moved.id, town.spot_at(1000.5))
    town.matching.set_active(left.id, False)
    town.run("UPDATE students SET location = NULL WHERE id = :id", id=lost.id)
    town.matching.reject(asked, task_id)
    assert town.states(task_id) == [
        (asked.id, "REJECTED", None),
        (last.id, "PENDING", None),
        (off_duty.id, "SKIPPED", "OFF_DUTY"),
        (moved.id, "SKIPPED", "TOO_FAR"),
        (left.id, "SKIPPED", "INACTIVE"),
        (lost.id, "SKIPPED", "NO_LOCATION"),
    ]
    view = town.matching.task(elder, task_id)
    assert (view.asked, view.remaining) == (2, 0)
    town.matching.set_availability(off_duty, True)
    town.matching.reject(last, task_id)
    assert town.status(task_id) == "TIMED_OUT", "a skipped student was asked"
    view = town.matching.task(elder, task_id)
    assert (view.asked, view.remaining) == (2, 0)


def test_student_with_a_task_is_skipped(town: Neighbourhood) -> None:
    first, busy, last = town.students(10, 20, 30)
    task_id = town.press()
    other_task = town.press(town.elder("Hatice Demir"))
    town.matching.accept(busy, other_task)
    town.matching.reject(first, task_id)
    assert town.states(task_id)[1:] == [(last.id, "PENDING", None), (busy.id, "SKIPPED", "HAS_A_TASK")]


def test_students_skipped_at_the_end_of_a_search_are_counted(town: Neighbourhood) -> None:
    asked, off_duty = town.students(10, 20)
    elder = town.elder()
    task_id = town.press(elder)
    town.matching.set_availability(off_duty, False)
    town.matching.reject(asked, task_id)
    view = town.matching.task(elder, task_id)
    assert (view.status, view.asked, view.remaining) == ("TIMED_OUT", 1, 0)


def test_repeated_answer_changes_nothing(town: Neighbourhood) -> None:
    ahmet, berat = town.students(10, 20)
    task_id = town.press()
    for _ in range(3):
        town.matching.reject(ahmet, task_id)
    assert town.asked(task_id) == berat.id
    for _ in range(3):
        assert town.matching.accept(berat, task_id).status == "ASSIGNED"
    for step in (town.matching.start, town.matching.complete):
        for _ in range(3):
            step(berat, task_id)
    assert town.one("SELECT completed FROM students WHERE id = :id", id=berat.id).completed == 1
    assert len(town.told(kind="COMPLETED")) == len(town.told(kind="ON_THE_WAY")) == 1
    assert town.matching.accept(berat, task_id).status == "COMPLETED"


def test_late_answer_is_refused_with_the_reason(town: Neighbourhood) -> None:
    ahmet, berat, _ = town.students(10, 20, 30)
    task_id = town.press()
    town.expire(task_id)
    with pytest.raises(OfferExpired):
        town.matching.accept(ahmet, task_id)
    with pytest.raises(OfferExpired):
        town.matching.reject(ahmet, task_id)
    town.matching.reject(berat, task_id)
    with pytest.raises(OfferRejected):
        town.matching.accept(berat, task_id)


def test_accepting_again_after_the_end_changes_nothing(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10)
    task_id = town.press(elder)
    town.matching.accept(ali, task_id)
    town.matching.start(ali, task_id)
    town.matching.complete(ali, task_id)
    assert town.matching.accept(ali, task_id).status == "COMPLETED"
    assert town.asked(town.press(elder)) == ali.id, "the student is still free"


def test_overdue_offer_cannot_be_accepted_before_it_is_settled(town: Neighbourhood) -> None:
    ahmet = town.student(10)
    task_id = town.press()
    town.make_overdue(task_id)
    for step in (town.matching.accept, town.matching.reject):
        with pytest.raises(OfferExpired):
            step(ahmet, task_id)
    assert town.matching.current_offer(ahmet) is None
    town.advance(task_id)
    assert town.states(task_id) == [(ahmet.id, "EXPIRED", None)]


def test_task_does_not_exist_for_a_student_who_was_never_asked(town: Neighbourhood) -> None:
    _, listed = town.students(10, 20)
    skipped = town.student(30)
    stranger, task_id = town.student(5000), town.press()
    town.matching.set_availability(skipped, False)
    town.run(
        "INSERT INTO offers (task_id, student_id, state, reason, closed_at)"
        " VALUES (:task, :student, 'SKIPPED', 'OFF_DUTY', clock_timestamp())",
        task=task_id,
        student=skipped.id,
    )
    town.run("UPDATE tasks SET skipped = 1")
    matching = town.matching
    for student in (listed, stranger, skipped):
        for step in (matching.accept, matching.reject, matching.start, matching.complete, matching.withdraw):
            with pytest.raises(TaskNotFound):
                step(student, task_id)
        with pytest.raises(TaskNotFound):
            matching.task(student, task_id)


def test_student_who_withdraws_is_not_asked_again_for_the_task(town: Neighbourhood) -> None:
    elder, ahmet, berat = town.elder(), town.student(10, "Ahmet Çelik"), town.student(20)
    task_id = town.press(elder)
    town.matching.accept(ahmet, task_id)
    view = town.matching.withdraw(ahmet, task_id)
    assert (view.status, view.student) == ("PENDING", None)
    assert town.states(task_id) == [(ahmet.id, "RELEASED", None), (berat.id, "PENDING", None)]
    assert town.bodies(elder)[-1] == "Ahmet gelemiyor. Size başka bir öğrenci arıyoruz."
    town.matching.withdraw(ahmet, task_id)
    assert town.asked(task_id) == berat.id, "the second withdrawal had an effect"
    with pytest.raises(OfferReleased):
        town.matching.accept(ahmet, task_id)
    town.matching.accept(berat, task_id)
    town.matching.start(berat, task_id)
    town.matching.withdraw(berat, task_id)
    assert town.status(task_id) == "TIMED_OUT", "the search did not end"


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_student_cannot_withdraw_from_an_ended_task(town: Neighbourhood, end: str) -> None:
    elder, ahmet = town.elder(), town.student(10)
    task_id = town.press(elder)
    town.matching.accept(ahmet, task_id)
    town.matching.start(ahmet, task_id)
    if end == "complete":
        town.matching.complete(ahmet, task_id)
    else:
        town.matching.cancel(elder, task_id)
    before = town.status(task_id)
    with pytest.raises(IllegalTaskTransition):
        town.matching.withdraw(ahmet, task_id)
    assert town.status(task_id) == before
    assert town.states(task_id) == [(ahmet.id, "ACCEPTED", None)]


def test_deeds_out_of_order_are_refused(town: Neighbourhood) -> None:
    ahmet = town.student(10)
    task_id = town.press()
    for step in (town.matching.start, town.matching.complete, town.matching.withdraw):
        with pytest.raises(NotAssigned):
            step(ahmet, task_id)
    town.matching.accept(ahmet, task_id)
    with pytest.raises(OfferAccepted):
        town.matching.reject(ahmet, task_id)


def test_coordinator_may_complete_a_task_that_was_not_started(town: Neighbourhood) -> None:
    elder, ahmet = town.elder(), town.student(10)
    task_id = town.press(elder)
    town.matching.accept(ahmet, task_id)
    with pytest.raises(IllegalTaskTransition):
        town.matching.complete(ahmet, task_id)
    assert town.matching.complete(town.coordinator(), task_id).status == "COMPLETED"
    assert [row.kind for row in town.told(elder)] == ["ON_THE_WAY", "STARTED", "COMPLETED"]
    assert town.task(task_id).started_at is not None


def test_completed_task_counts_for_the_month(town: Neighbourhood) -> None:
    for months_ago, before, after in ((0, 3, 4), (1, 7, 1)):
        student = town.student(10, completed=before, months_ago=months_ago)
        task_id = town.press(town.elder())
        town.matching.assign(town.coordinator(), task_id, student.id)
        town.matching.start(student, task_id)
        town.matching.complete(student, task_id)
        row = town.one(
            "SELECT completed, month = date_trunc('month', clock_timestamp() AT TIME ZONE 'Europe/Istanbul')::date"
            " AS this_month, open_task_id FROM students WHERE id = :id",
            id=student.id,
        )
        assert (row.completed, row.this_month, row.open_task_id) == (after, True, None)


def test_student_with_fewer_completed_tasks_is_asked_first(town: Neighbourhood) -> None:
    near, far = town.students(10, 500)
    task_id = town.press()
    town.matching.accept(near, task_id)
    town.matching.start(near, task_id)
    town.matching.complete(near, task_id)
    assert town.asked(town.press(town.elder("Hatice Demir"))) == far.id


def test_view_shows_asked_and_remaining_during_the_cascade(town: Neighbourhood) -> None:
    elder = town.elder()
    students = town.students(*range(10, 100, 10))
    task_id = town.press(elder)
    for number, student in enumerate(students, 1):
        view = town.matching.task(elder, task_id)
        assert (view.asked, view.remaining) == (number, 9 - number)
        town.matching.reject(student, task_id)


# ---- cancelling ----


def test_cancel_cancels_the_unsent_notification_of_the_offer(town: Neighbourhood) -> None:
    elder, ahmet = town.elder(), town.student(10)
    task_id = town.press(elder)
    assert town.matching.cancel(elder, task_id).status == "CANCELLED"
    assert town.states(task_id) == [(ahmet.id, "WITHDRAWN", "CANCELLED")]
    offer, taken_back = town.told(ahmet)
    assert (offer.kind, offer.status) == ("OFFER", "CANCELLED")
    assert (taken_back.kind, taken_back.subject, taken_back.body) == ("OFFER_WITHDRAWN", "", "")
    assert taken_back.metadata["data"]["taskId"] == str(task_id)
    assert town.told(elder) == [], "the elder who cancelled was notified"
    town.matching.cancel(elder, task_id)
    assert len(town.told(ahmet)) == 2


def test_cancel_leaves_a_sent_notification_unchanged(town: Neighbourhood) -> None:
    elder, ahmet = town.elder(), town.student(10)
    task_id = town.press(elder)
    town.run("UPDATE notifications SET status = 'SENT', finished_at = clock_timestamp(), due_at = NULL")
    town.matching.cancel(elder, task_id)
    assert [(row.kind, row.status) for row in town.told(ahmet)] == [("OFFER", "SENT"), ("OFFER_WITHDRAWN", "ACCEPTED")]


@pytest.mark.parametrize("started", [False, True])
def test_cancel_frees_and_notifies_the_assigned_student(town: Neighbourhood, started: bool) -> None:
    elder, ahmet = town.elder(), town.student(10)
    task_id = town.press(elder)
    town.matching.accept(ahmet, task_id)
    if started:
        town.matching.start(ahmet, task_id)
    town.matching.cancel(elder, task_id)
    assert town.bodies(ahmet, "CANCELLED") == ["Talep iptal edildi."]
    assert town.matching.open_task(ahmet) is None
    assert town.asked(town.press(elder)) == ahmet.id


def test_cancel_by_a_coordinator_notifies_the_elder(town: Neighbourhood) -> None:
    elder = town.elder()
    town.student(10)
    task_id = town.press(elder)
    town.matching.cancel(town.coordinator(), task_id)
    assert town.bodies(elder) == ["Talep iptal edildi."]


def test_elder_can_cancel_only_their_own_task(town: Neighbourhood) -> None:
    ahmet = town.student(10)
    task_id = town.press()
    for stranger in (town.elder("Hatice Demir"), ahmet):
        with pytest.raises(TaskNotFound):
            town.matching.cancel(stranger, task_id)
    assert town.asked(task_id) == ahmet.id


def test_ended_task_cannot_be_cancelled(town: Neighbourhood) -> None:
    elder = town.elder()
    task_id = town.press(elder)
    assert town.status(task_id) == "TIMED_OUT"
    with pytest.raises(IllegalTaskTransition):
        town.matching.cancel(elder, task_id)


# ---- reports ----


def test_task_not_started_in_time_is_reported_once(town: Neighbourhood) -> None:
    coordinator, elder, ahmet = town.coordinator(), town.elder(), town.student(10, "Ahmet Çelik")
    task_id = town.press(elder)
    town.matching.accept(ahmet, task_id)
    town.advance(task_id)
    assert town.told(coordinator) == []
    town.age(task_id, 1801)
    for _ in range(3):
        town.advance(task_id)
    assert town.bodies(coordinator) == ["Ahmet Çelik henüz başlamadı. Bekleyen: Ayşe Yılmaz, telefon: +905550000001."]
    assert town.status(task_id) == "ASSIGNED"
    town.age(task_id, 14_400)
    for _ in range(3):
        town.advance(task_id)
    assert [row.kind for row in town.told(coordinator)] == ["NOT_STARTED", "NOT_COMPLETED"]
    town.matching.start(ahmet, task_id)
    town.advance(task_id)
    assert len(town.told(coordinator)) == 2, "the task was reported twice"
    town.matching.complete(ahmet, task_id)


def test_task_not_completed_in_time_is_reported_once(town: Neighbourhood) -> None:
    coordinator, ahmet = town.coordinator(), town.student(10, "Ahmet Çelik")
    task_id = town.press()
    town.matching.accept(ahmet, task_id)
    town.matching.start(ahmet, task_id)
    town.age(task_id, 1801)
    town.advance(task_id)
    assert town.told(coordinator) == [], "a started task was reported as not started"
    town.age(task_id, 14_400 - 1801 + 1)
    for _ in range(3):
        town.advance(task_id)
    assert town.bodies(coordinator) == ["Ahmet Çelik henüz bitirmedi. Bekleyen: Ayşe Yılmaz, telefon: +905550000001."]
    assert town.status(task_id) == "STARTED"


def test_task_completed_in_time_is_not_reported(town: Neighbourhood) -> None:
    coordinator, ahmet = town.coordinator(), town.student(10)
    task_id = town.press()
    town.matching.accept(ahmet, task_id)
    town.matching.start(ahmet, task_id)
    town.matching.complete(ahmet, task_id)
    town.age(task_id, 100_000)
    town.advance(task_id)
    assert town.told(coordinator) == []
