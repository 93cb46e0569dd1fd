"""Personal data is forgotten after its time, and nothing that is still needed."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from app.api.services import Services
from app.db.bites import MOST
from app.db.database import Database
from app.db.months import Partition, add_months, drop_month, following, partitions
from app.delivery.old_messages import OLD_MONTHS_OF_NOTIFICATIONS
from app.delivery.service import MONTHLY, verify_audit_trail
from app.foundation.ids import earliest_id
from app.jobs.engine.execution_context import ExecutionContext, JobResources
from app.jobs.scripts.privacy_retention import PrivacyRetentionParams, run
from app.matching.contract import TaskOutcome
from tests.support.actions import ActionHarness
from tests.support.matching import SPOT, Neighbourhood, at_once
from tests.support.old_rows import OldRows, id_of

NOTE = "Kalp ilacım bitti, 3. kat"


@pytest.fixture
def town(services: Services) -> Any:
    built = Neighbourhood(services)
    yield built
    built.close()


@pytest.fixture
def old(db: Database) -> Any:
    rows = OldRows(db)
    yield rows
    rows.drop_months()


@pytest.fixture
def forget(services: Services) -> Callable[..., dict[str, Any]]:
    """Runs the job, and returns what it did by kind."""

    def forget(*kinds: str, dry_run: bool = False) -> dict[str, Any]:
        resources = JobResources(services.settings, services.db)
        done = run(
            PrivacyRetentionParams(kinds=kinds, dry_run=dry_run),
            ExecutionContext("t", "io-0", resources=lambda: resources),
        )
        assert json.loads(json.dumps(done)) == done
        return done["kinds"]

    return forget


def test_notes_and_exact_places_of_ended_tasks_are_forgotten(town: Neighbourhood, forget: Any) -> None:
    student = town.student(430.0)
    task_id = town.press(note=NOTE, key="telefon-1")
    town.matching.accept(student, task_id)
    town.matching.start(student, task_id)
    town.matching.complete(student, task_id)
    before = town.one(GEOHASHES, id=task_id)
    assert forget()["notes"]["rows"] == 0
    OldRows(town.db).age_task(task_id, days=31)
    version = town.task(task_id).updated_at
    done = forget()
    assert (done["notes"]["rows"], done["places"]["rows"]) == (1, 2)
    task, after = town.task(task_id), town.one(GEOHASHES, id=task_id)
    assert (task.note, task.idempotency_key, task.status, task.updated_at) == (None, None, "COMPLETED", version)
    assert (after.six, after.five) == (before.six, before.five)
    assert (after.lat, after.lon) != (SPOT.lat, SPOT.lon)
    [offer] = town.all("SELECT distance_m FROM offers WHERE task_id = :id", id=task_id)
    assert offer.distance_m == 500
    assert forget()["notes"]["rows"] == 0


GEOHASHES = """
SELECT ST_GeoHash(location::geometry, 6) AS six, ST_GeoHash(location::geometry, 5) AS five,
       ST_Y(location::geometry) AS lat, ST_X(location::geometry) AS lon FROM tasks WHERE id = :id
"""


@pytest.mark.parametrize("until", ["PENDING", "ASSIGNED", "STARTED"])
def test_open_task_keeps_its_note_however_old_it_is(town: Neighbourhood, forget: Any, until: str) -> None:
    student = town.student(100.0)
    task_id = town.press(note=NOTE)
    if until != "PENDING":
        town.matching.accept(student, task_id)
    if until == "STARTED":
        town.matching.start(student, task_id)
    OldRows(town.db).age_task(task_id, days=400)
    place = town.task(task_id).location
    forget()
    task = town.task(task_id)
    assert (task.status, task.note, task.location) == (until, NOTE, place)
    # It is forgotten after its end, although the job has passed its time.
    town.run("UPDATE tasks SET next_step_at = clock_timestamp() + interval '1 hour' WHERE id = :id", id=task_id)
    town.matching.cancel(town.coordinator(), task_id)
    OldRows(town.db).age_task(task_id, days=31)
    forget()
    assert town.task(task_id).note is None


def test_notes_of_what_became_of_a_task_are_forgotten_and_the_outcome_stays(town: Neighbourhood, forget: Any) -> None:
    coordinator, task_id = town.coordinator(), town.press()
    town.matching.say_outcome(coordinator, task_id, TaskOutcome.HELPED_BY_OTHERS, NOTE)
    assert forget()["notes"]["rows"] == 0
    town.run("UPDATE task_outcomes SET said_at = said_at - interval '31 days'")
    assert forget()["notes"]["rows"] == 1
    said = town.one("SELECT outcome, note FROM task_outcomes")
    assert (said.outcome, said.note) == ("HELPED_BY_OTHERS", None)
    # A note that is written long after the end of the task has its own time.
    town.matching.say_outcome(coordinator, task_id, TaskOutcome.OTHER, NOTE)
    assert forget()["notes"]["rows"] == 0


def test_words_of_finished_messages_are_forgotten_and_the_rows_stay(db: Database, old: OldRows, forget: Any) -> None:
    sent = old.notification(days=31, body="Ahmet yola çıktı!", subject="Yardım geliyor")
    by_mail = old.notification(days=31, recipient="ayse@ornek.org", metadata={"cc": "x@ornek.org"})
    young = old.notification(days=29, body="Berat yola çıktı!")
    done = forget("messages")
    assert done["messages"]["rows"] == 2
    assert [(row.subject, row.body, row.recipient) for row in old.notifications(sent, by_mail)] == [
        ("", "", "user:1"),
        ("", "", ""),
    ]
    assert old.notifications(by_mail)[0].metadata == {}
    assert old.notifications(young)[0].body == "Berat yola çıktı!"
    assert old.notifications(sent)[0].status == "SENT"
    assert forget("messages")["messages"]["rows"] == 0


@pytest.mark.parametrize("status", ["ACCEPTED", "SENDING", "RETRYING"])
def test_unsent_message_keeps_its_words_and_its_month(db: Database, old: OldRows, forget: Any, status: str) -> None:
    unsent = old.notification(days=400, status=status, body="Ahmet yola çıktı!")
    sent = old.notification(days=400, body="Berat yola çıktı!")
    forget()
    assert [row.body for row in old.notifications(unsent)] == ["Ahmet yola çıktı!"]
    assert old.notifications(sent) == []
    old.finish(unsent)
    forget()
    assert old.notifications(unsent) == []


def test_open_dead_letter_protects_its_message_until_it_is_closed(db: Database, old: OldRows, forget: Any) -> None:
    given_up = old.notification(days=100, status="DEAD", body="Ahmet yola çıktı!")
    dead_letter = old.dead_letter(given_up, days=100)
    forget()
    assert old.notifications(given_up)[0].body == "Ahmet yola çıktı!"
    old.close(dead_letter, days=1)
    assert forget()["messages"]["rows"] == 1
    assert old.notifications(given_up)[0].body == ""
    assert old.count("dead_letters") == 1
    old.close(dead_letter, days=91)
    assert forget()["dead_letters"]["rows"] == 1
    assert old.count("dead_letters") == 0


def test_variables_of_finished_actions_are_forgotten_and_later_the_rows(
    db: Database, old: OldRows, forget: Any
) -> None:
    harness = ActionHarness(db)
    plan = harness.plan({"channel_type": "sms", "audience": "PERSON"}, {"channel_type": "push", "audience": "PERSON"})
    person = harness.user("+905550000001")
    finished, running = (
        harness.ask(plan, person, variables={"elder": "Ayşe Yılmaz"}, context={"device_id": "x"}) for _ in range(2)
    )
    harness.settle()
    [first, _] = harness.claim("sms")
    harness.record([first], "SENT", "SENT", None)  # type: ignore[arg-type]
    finished_id = first.action_id
    running_id = ({finished, running} - {finished_id}).pop()
    harness.settle()
    harness.deliver("push")
    aged = {id_: old.age_action(id_, days=31) for id_ in (finished_id, running_id)}
    done = forget("messages")
    gone, kept = (harness.action(aged[id_]) for id_ in (finished_id, running_id))
    assert done["messages"]["rows"] >= 1
    assert (gone.status, gone.variables, gone.context) == ("DONE", {}, {})
    assert "+905550000001" not in json.dumps(gone.steps)
    assert [step["state"] for step in gone.steps] == ["SENT", "SENT"]
    assert kept.variables == {"elder": "Ayşe Yılmaz"}
    assert "+905550000001" in json.dumps(kept.steps)
    old_ids = [old.age_action(id_, days=181) for id_ in aged.values()]
    forget()
    assert [id_ for id_ in old_ids if harness.sql("SELECT FROM actions WHERE id = :id", id=id_)] == [old_ids[1]]


def test_old_months_are_dropped_and_their_numbers_stay(db: Database, old: OldRows, forget: Any) -> None:
    for day in range(3):
        old.notification(days=300 + day, attempts=2)
    old.notification(days=300, status="EXPIRED")
    before = old.months("notifications")
    done = forget()
    assert done["notifications"]["months"] == [name for name in before if old.is_over(name, days=180)]
    assert done["attempts"]["rows"] == 6
    assert old.count("notifications") == 0
    assert old.count("notification_attempts") == 0
    counts = old.rows("SELECT status, sum(notifications) AS n, sum(attempts) AS a FROM notification_counts GROUP BY 1")
    assert {(row.status, row.n, row.a) for row in counts} == {("SENT", 3, 6), ("EXPIRED", 1, 0)}
    assert forget()["notifications"]["months"] == []


def test_month_with_an_open_dead_letter_is_forgotten_row_by_row(db: Database, old: OldRows, forget: Any) -> None:
    kept = old.notification(days=300, status="DEAD", attempts=1)
    others = [old.notification(days=300, attempts=1) for _ in range(5)]
    old.dead_letter(kept, days=300)
    done = forget()
    assert done["notifications"]["months"] == []
    assert (done["notifications"]["rows"], done["attempts"]["rows"]) == (5, 5)
    assert [row.id for row in old.notifications(kept, *others)] == [kept]
    assert old.count("notification_attempts") == 1
    assert old.rows("SELECT sum(notifications) AS n FROM notification_counts")[0].n == 5


def test_month_that_is_needed_again_while_it_is_counted_is_not_dropped(db: Database, old: OldRows) -> None:
    id_ = old.notification(days=300, status="DEAD")
    redriven = f"UPDATE notifications SET status = 'ACCEPTED', due_at = now(), finished_at = NULL WHERE id = '{id_}'"
    counted = f"WITH redriven AS ({redriven} RETURNING 1) SELECT 'SELECT' FROM redriven"
    with db.reading() as conn:
        [month] = [one for one in partitions(conn, MONTHLY[0]) if one.name in old.months_with_rows()]
    assert drop_month(db, replace(OLD_MONTHS_OF_NOTIFICATIONS, counted=counted, add="SELECT"), month) is None
    assert old.notifications(id_)[0].status == "ACCEPTED"


def test_rows_that_a_second_run_forgets_while_the_month_is_counted_are_not_counted_twice(
    db: Database, old: OldRows, forget: Any
) -> None:
    first, _ = old.notification(days=300), old.notification(days=300)
    [month] = [one for one in _partitions(db) if one.name in old.months_with_rows()]
    eaten = f"WITH gone AS (DELETE FROM {month.name} t WHERE t.id = '{first}' RETURNING t.*), counts AS ("
    eaten += OLD_MONTHS_OF_NOTIFICATIONS.rows.then.replace("FROM changed", "FROM gone") + " RETURNING 1)"
    counted = OLD_MONTHS_OF_NOTIFICATIONS.counted.replace("SELECT 'VALUES '", f"{eaten} SELECT 'VALUES '", 1)
    assert drop_month(db, replace(OLD_MONTHS_OF_NOTIFICATIONS, counted=counted), month) is None
    forget("notifications")
    assert old.rows("SELECT sum(notifications) AS n FROM notification_counts")[0].n == 2


def _partitions(db: Database) -> list[Partition]:
    with db.reading() as conn:
        return partitions(conn, MONTHLY[0])


def test_rows_in_the_default_partition_are_forgotten_too(db: Database, old: OldRows, forget: Any) -> None:
    stray = old.notification(days=300, id_=UUID("ffffffff-ffff-4fff-bfff-000000000001"), attempts=1)
    assert old.rows("SELECT tableoid::regclass::text AS name FROM notifications")[0].name == "notifications_default"
    forget()
    assert old.notifications(stray) == []


def test_devices_keys_codes_and_removed_addresses_are_forgotten(db: Database, old: OldRows, forget: Any) -> None:
    harness = ActionHarness(db)
    user_id = harness.user()
    for number, days in enumerate((269, 271)):
        old.run(
            "INSERT INTO devices (device_id, user_id, token, platform, updated_at)"
            " VALUES (:id, :user_id, :id, 'ANDROID', clock_timestamp() - make_interval(days => CAST(:days AS int)))",
            id=f"phone-{number}", user_id=user_id, days=days,
        )  # fmt: skip
    notification_id = old.notification(days=8)
    live_id = old.notification(days=8, status="ACCEPTED")
    for id_ in (notification_id, live_id):
        old.run(
            "INSERT INTO notification_keys (caller_id, key, digest, notification_id, created_at)"
            " VALUES (:user_id, :key, '', :id, clock_timestamp() - interval '8 days')",
            user_id=user_id, key=str(id_), id=id_,
        )  # fmt: skip
    profile = harness.profile(("sms", "+905559998877"), user_id=user_id)
    [channel] = harness.sql("SELECT id FROM recipient_channels")
    old.run(
        "INSERT INTO channel_verifications (channel_id, notification_id, digest, tries_left, expires_at)"
        " VALUES (:id, :n, '', 5, clock_timestamp() - interval '8 days')", id=channel.id, n=notification_id,
    )  # fmt: skip
    for table in ("recipient_channels", "recipient_profiles"):
        old.run(f"UPDATE {table} SET retired_at = clock_timestamp() - interval '91 days'")
    done = forget()
    assert done["devices"]["rows"] == 1
    assert [row.device_id for row in old.rows("SELECT device_id FROM devices")] == ["phone-0"]
    assert [row.notification_id for row in old.rows("SELECT notification_id FROM notification_keys")] == [live_id]
    assert old.count("channel_verifications") == 0
    [row] = old.rows(
        "SELECT c.target, p.name FROM recipient_channels c JOIN recipient_profiles p ON p.id = :id", id=profile
    )
    assert (row.target, row.name) == ("", "")
    kept = {row.name for row in old.rows("SELECT name FROM recipient_profiles WHERE key IS NOT NULL")}
    assert kept == {"Nöbetçi koordinatör", "Liste izleyicileri"}


def test_who_left_a_list_long_ago_is_unbound_and_who_is_on_it_stays(db: Database, old: OldRows, forget: Any) -> None:
    harness = ActionHarness(db)
    for identifier, days in (("stays", None), ("left", 364), ("left long ago", 366)):
        old.run(
            "INSERT INTO roster_people (document_type, identifier, user_id, fields, left_at)"
            " VALUES (3, :identifier, :user_id, '{}', clock_timestamp() - make_interval(days => CAST(:days AS int)))",
            identifier=identifier, user_id=harness.user(), days=days,
        )  # fmt: skip
    assert forget(dry_run=True)["roster"]["rows"] == 1
    assert forget()["roster"]["rows"] == 1
    assert [row.identifier for row in old.rows("SELECT identifier FROM roster_people ORDER BY 1")] == ["left", "stays"]


def test_dry_run_tells_numbers_and_changes_nothing(db: Database, old: OldRows, forget: Any) -> None:
    oldest = old.notification(days=300, body="Ahmet yola çıktı!", attempts=1)
    found = forget(dry_run=True)
    assert (found["messages"]["rows"], found["notifications"]["rows"], found["attempts"]["rows"]) == (1, 1, 1)
    age = datetime.now(UTC) - datetime.fromisoformat(found["messages"]["oldest"])
    assert timedelta(days=299) < age < timedelta(days=301)
    assert old.notifications(oldest)[0].body == "Ahmet yola çıktı!"
    assert old.count("retention_marks") == 0


def test_dry_run_tells_the_numbers_of_the_run_that_follows(
    town: Neighbourhood, old: OldRows, forget: Any, db: Database
) -> None:
    students = {student.id: student for student in town.students(100.0, 200.0, 300.0)}
    task_id = town.press(note=NOTE)
    while (asked := town.asked(task_id)) is not None:
        town.matching.reject(students[asked], task_id)
    old.age_task(task_id, days=31)
    given_up = old.notification(days=40, status="DEAD")
    for _ in range(2):
        old.close(old.dead_letter(given_up, days=40), days=1)
    behind = old.notification(days=41, status="DEAD")
    protecting = old.dead_letter(behind, days=41)
    told = {kind: one["rows"] for kind, one in forget(dry_run=True).items()}
    assert (told["places"], told["messages"]) == (4, 1)
    assert {kind: one["rows"] for kind, one in forget().items()} == told
    old.close(protecting, days=1)
    assert (forget(dry_run=True)["messages"]["rows"], forget()["messages"]["rows"]) == (1, 1)


@pytest.mark.parametrize("environ", [{"retain_messages_days": 0, "retain_notifications_days": 0}])
def test_zero_days_keeps_for_ever(old: OldRows, forget: Any, environ: dict[str, Any]) -> None:
    kept = old.notification(days=2000, body="Ahmet yola çıktı!")
    done = forget()
    assert old.notifications(kept)[0].body == "Ahmet yola çıktı!"
    assert (done["messages"]["rows"], done["notifications"]["rows"]) == (0, 0)


def test_interrupted_run_is_continued_by_the_next(services: Services, db: Database, old: OldRows, forget: Any) -> None:
    old.many_notifications(3 * MOST, days=40)
    calls = iter([False] * 8)
    context = ExecutionContext("t", "io-0", resources=lambda: JobResources(services.settings, db))
    context.cancel.is_set = lambda: next(calls, True)  # type: ignore[method-assign]
    done = run(PrivacyRetentionParams(kinds=("messages",)), context)
    assert done["finished"] is False
    first = done["kinds"]["messages"]["rows"]
    assert 0 < first < 3 * MOST
    assert forget("messages")["messages"]["rows"] == 3 * MOST - first
    assert old.rows("SELECT count(*) AS n FROM notifications WHERE body <> ''")[0].n == 0


def test_audit_trail_is_kept_and_verified(services: Services, db: Database, old: OldRows, forget: Any) -> None:
    old.audit_entry(days=4000)
    forget()
    verified = verify_audit_trail(db)
    assert (verified.count, verified.broken_id) == (1, None)


def test_months_ahead_are_added_by_several_processes_at_once(db: Database, forget: Any) -> None:
    tables = MONTHLY
    added = at_once(*[lambda: add_months(db, tables, ahead=5)] * 4)
    try:
        assert not [one for one in added if isinstance(one, Exception)]
        with db.reading() as conn:
            months = [one.month for one in partitions(conn, tables[0])]
        this_month = datetime.now(UTC).date().replace(day=1)
        assert months[-6:] == _months(this_month, 6)
    finally:
        OldRows(db).drop_months(after=_months(this_month, 4)[-1])


def test_month_with_rows_in_the_default_partition_is_left_there(db: Database, old: OldRows) -> None:
    month = _months(datetime.now(UTC).date().replace(day=1), 6)[-1]
    stray = old.notification(days=0, id_=id_of(datetime(month.year, month.month, 10, tzinfo=UTC)))
    try:
        with capture_logs() as logs:
            added = add_months(db, MONTHLY, ahead=5)
        assert f"notifications_{month:%Y_%m}" not in added
        assert f"notification_attempts_{month:%Y_%m}" in added
        assert [one["event"] for one in logs] == ["month_is_in_default_partition"]
        assert len(old.notifications(stray)) == 1
    finally:
        old.drop_months(after=_months(datetime.now(UTC).date().replace(day=1), 4)[-1])


def _months(month: date, count: int) -> list[date]:
    found = [month]
    while len(found) < count:
        found.append(following(found[-1]))
    return found


def test_parameter_that_names_no_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no kind 'nptes'; there are: notes"):
        PrivacyRetentionParams(kinds=("nptes",))


def test_borders_of_months_are_those_of_the_migration(db: Database) -> None:
    with db.reading() as conn:
        bounds = conn.execute(
            text(
                "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound FROM pg_class c"
                " WHERE c.relname LIKE 'notifications\\_2%' AND c.relkind = 'r'"
            )
        ).all()
    assert bounds
    for name, bound in bounds:
        year, month = (int(part) for part in name.split("_")[1:])
        assert f"FROM ('{earliest_id(datetime(year, month, 1, tzinfo=UTC))}')" in bound
