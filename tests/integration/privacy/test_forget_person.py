"""A person who wishes to be forgotten leaves no trace: nothing holds their name, phone, tokens, notes or place."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import redis
from sqlalchemy import text

from app.api.services import Services
from app.bootstrap.forgetting import open_traces
from app.cli import manage_users
from app.db.database import Database
from app.delivery.actions.conductor import Conductor
from app.delivery.actions.result_format import Topic
from app.delivery.channels import audit_trail
from app.delivery.directory.service import CHANNELS, PROFILES
from app.delivery.directory.verification import start_verification
from app.delivery.messages.claims import claim
from app.delivery.messages.submit import NewSubmission, SubmissionKey, submit_notification
from app.delivery.messages.values import Notification, NotificationType, Priority
from app.delivery.role import FOLLOWERS
from app.delivery.service import verify_audit_trail
from app.delivery.traces_of_person import AT_ONCE, FoundAction, FoundNotification, FoundTraces
from app.foundation.ids import uuid7
from app.jobs.service import forget_jobs
from app.matching.contract import TaskOutcome
from app.privacy.forget_person import WHY
from app.privacy.service import Forgetting, StillSending, forget_person
from app.redis_store.limits import PerUserLimit
from app.users import service as users
from app.users.contract import EVERYTHING, LastAdmin, UserDeactivated, UserNotFound
from app.users.models import Caller, LatLon, Platform, Role
from tests.support.actions import RULES, ActionHarness
from tests.support.copies import record_all, send_all
from tests.support.listed_people import ELDERS, ListedPeople, row
from tests.support.matching import Neighbourhood
from tests.support.streams import ask, bare, requested

NAME, FIRST = "Zümrüdüanka Kızılırmak", "Zümrüdüanka"
PHONE, NATIONAL = "+905557654321", "0555 765 43 21"
NOTE, TOKEN, DEVICE = "Kalp ilacım kırmızı kutuda", "tok-zumrudu-4711", "cihaz-zumrudu-4711"
PLACE = LatLon(40.98712345, 29.02854321)
UID = "firebase-uid-zumrudu"
ID = "01a1f2e8-a4a2-7faa-a1c7-005557654321"
MARKERS = (NAME, FIRST, PHONE, PHONE[1:], "05557654321", NOTE, TOKEN, DEVICE, UID, "Kızılırmak")


@dataclass
class Town:
    services: Services
    there: Neighbourhood
    harness: ActionHarness
    forgetting: Forgetting
    slept: list[float] = field(default_factory=list)

    def forget(self, user_id: int, **options: Any) -> dict[str, Any]:
        return forget_person(self.forgetting, user_id, **options)

    def person(self, role: Role) -> Caller:
        """Somebody with all kinds of data, everywhere."""
        place = PLACE if role is not Role.COORDINATOR else None
        new = users.NewUser(role, NAME, PHONE, location=place, firebase_uid=UID)
        with self.services.db.transaction() as conn:
            id_ = users.create_user(conn, new).id
            users.put_device(conn, id_, users.DeviceRegistration(DEVICE, TOKEN, Platform.ANDROID))
            profile = PROFILES.create(conn, {"name": NAME, "user_id": id_}, RULES)
            sms = CHANNELS.create(conn, {"profile_id": profile.id, "channel_type": "sms", "target": PHONE}, RULES)
            start_verification(conn, sms.id)
            key = SubmissionKey(id_, f"anahtar {NAME}")
            for type_, recipient in (("SMS", NATIONAL), ("IN_APP", f"user:{id_}"), ("PUSH", TOKEN)):
                submission = NewSubmission(NotificationType(type_), recipient, f"Merhaba {NAME}", metadata={"x": PHONE})
                submit_notification(conn, EVERYTHING, submission, "90", key if type_ == "IN_APP" else None)
            about = NewSubmission(
                NotificationType.EMAIL, "nobetci@ornek.org", f"{NAME} aradı, {NATIONAL}", subject=NAME
            )
            submit_notification(conn, EVERYTHING, about, "90")
        return Caller(id_, role, NAME, "tr", None)

    def deliver(self) -> None:
        """Sends everything, and keeps the copies that the channels of this database write."""
        Conductor(self.services.db, RULES).run_once()
        send_all(self.services)
        Conductor(self.services.db, RULES).run_once()

    def traces(self, *markers: str) -> dict[str, list[str]]:
        """The markers that any column of any table, or any key of Redis, still holds."""
        found: dict[str, list[str]] = {}
        with self.services.db.transaction() as conn:
            tables = conn.execute(text(TABLES)).scalars().all()
            for table in tables:
                rows = conn.execute(text(f"SELECT t::text FROM {table} AS t")).scalars().all()
                self._search(found, table, rows, markers)
        url = self.services.settings.redis_url
        client: Any = redis.Redis.from_url(url, decode_responses=True, encoding_errors="replace")
        for key in client.scan_iter():
            self._search(found, key, [key, json.dumps(_content(client, key), ensure_ascii=False)], markers)
        return found

    @staticmethod
    def _search(found: dict[str, list[str]], where: str, rows: Any, markers: tuple[str, ...]) -> None:
        held = [marker for marker in markers for row in rows if marker in row]
        if held:
            found[where] = held


TABLES = """
SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
   AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'spatial_ref_sys'
"""


def _content(client: Any, key: str) -> Any:
    match client.type(key):
        case "string":
            return client.get(key)
        case "list":
            return client.lrange(key, 0, -1)
        case "hash":
            return client.hgetall(key)
        case "zset":
            return client.zrange(key, 0, -1, withscores=True)
        case "stream":
            return [
                [id_, {name: _plain(value) for name, value in fields.items()}] for id_, fields in client.xrange(key)
            ]
        case _:
            return None


def _plain(value: str) -> str:
    try:
        return json.dumps(json.loads(value), ensure_ascii=False)
    except ValueError:
        return value


@pytest.fixture
def town(services: Services) -> Iterator[Town]:
    there = Neighbourhood(services)
    traces = open_traces(services.settings)
    slept: list[float] = []
    forgetting = Forgetting(services.db, services.matching, traces, "90", forget_jobs, slept.append)
    yield Town(services, there, ActionHarness(services.db), forgetting, slept)
    traces.close()
    there.close()


def place_marks(town: Town) -> tuple[str, ...]:
    """The exact place as PostgreSQL writes it."""
    row = town.there.one(
        "SELECT ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography::text AS place", lat=PLACE.lat, lon=PLACE.lon
    )
    return (row.place, row.place[18:34], row.place[34:50])


def put_on_streams(town: Town) -> None:
    client = bare(town.services)
    plan = town.harness.plan({"channel_type": "device_downlink"})
    ask(client, json.dumps(requested("act-1", plan, variables={"elder": NAME, "phone": PHONE})))
    ask(client, b"\xff\xfe no JSON at all")
    client.xadd(f"cinga.{Topic.EXECUTED}", {"payload": json.dumps({"context": {"device_id": DEVICE}})})
    client.xadd(f"cinga.{Topic.EXECUTED}", {"payload": json.dumps({"context": {"device_id": "another"}})})


def test_elder_leaves_no_trace(town: Town) -> None:
    there, elder = town.there, town.person(Role.ELDER)
    there.coordinator()
    student = there.student(100.0, at=PLACE)
    done = there.press(elder, NOTE, "anahtar-1")
    there.matching.accept(student, done)
    there.matching.start(student, done)
    there.matching.complete(student, done)
    there.run("UPDATE students SET on_duty = false")
    over = there.press(elder, NOTE)
    there.advance(over)
    assert there.status(over) == "TIMED_OUT"
    there.matching.say_outcome(there.coordinator(), over, TaskOutcome.OTHER, f"{NAME} telefonda: {NOTE}")
    there.run("UPDATE students SET on_duty = true")
    town.harness.ask(
        town.harness.plan({"channel_type": "sms", "audience": "PERSON"}),
        elder.id,
        variables={"elder": NAME},
        context={"trace_id": PHONE},
        evaluation_key=f"kural {NAME}",
    )
    put_on_streams(town)
    town.deliver()
    is_open = there.press(elder, NOTE)
    there.matching.accept(student, is_open)
    marks = (*MARKERS, *place_marks(town))
    planted = town.traces(*marks)
    assert planted.keys() >= PLANTED, PLANTED - planted.keys()
    receipt = town.forget(elder.id)
    assert town.traces(*marks) == {}
    assert there.status(is_open) == "CANCELLED"
    assert [row.kind for row in there.told(student, task_id=is_open)][-1] == "CANCELLED"
    assert {there.status(done), there.status(over)} == {"COMPLETED", "TIMED_OUT"}
    assert not any(marker in json.dumps(receipt, ensure_ascii=False) for marker in marks)
    [entry] = there.all("SELECT * FROM audit_entries WHERE subject = 'privacy.forgotten'")
    assert (entry.metadata["sha256"], entry.author) == (receipt["sha256"], "operator")
    assert verify_audit_trail(town.services.db).broken_id is None
    # Entries of others stay on the streams.
    assert [fields for _, fields in bare(town.services).xrange(f"cinga.{Topic.EXECUTED}")] == [
        {"payload": json.dumps({"context": {"device_id": "another"}})}
    ]


PLANTED = {
    "users",
    "devices",
    "tasks",
    "task_outcomes",
    "notifications",
    "notification_attempts",
    "actions",
    "in_app_messages",
    "recorded_pushes",
    "recipient_profiles",
    "recipient_channels",
    "notification_keys",
    "cinga.action.requested",
    "cinga.action.executed",
}


def test_student_leaves_no_trace_and_the_elder_gets_the_next_one(town: Town) -> None:
    there, student = town.there, town.person(Role.STUDENT)
    elder = there.elder(at=PLACE)
    next_student = there.student(300.0, at=PLACE)
    done = there.press(elder)
    for deed in (there.matching.accept, there.matching.start, there.matching.complete):
        deed(student, done)
    town.deliver()
    # Copies live longer than the words of their notifications.
    there.run(
        "INSERT INTO in_app_messages (notification_id, user_id, subject, body, data)"
        " SELECT id, recipient_user_id, subject, body, '{}' FROM notifications"
        " WHERE recipient_user_id = :id AND notification_type <> 'IN_APP'",
        id=elder.id,
    )
    there.run("UPDATE notifications SET subject = '', body = '', metadata = '{}' WHERE finished_at IS NOT NULL")
    # The count of this month would send the next task to the other student first.
    there.run("UPDATE students SET completed = 0")
    task_id = there.press(elder)
    there.matching.accept(student, task_id)
    marks = (*MARKERS, *place_marks(town)[:1])
    assert {"students", "in_app_messages"} <= town.traces(*marks).keys()
    receipt = town.forget(student.id)
    assert receipt["rows"]["students"] == 1
    left = town.traces(*MARKERS)
    assert left == {}
    assert there.one("SELECT location FROM students WHERE id = :id", id=student.id).location is None
    assert (there.status(task_id), there.asked(task_id)) == ("PENDING", next_student.id)
    # The elder still gets the news, without the name.
    assert there.bodies(elder, "SEARCHING_AGAIN") == ["Öğrenci gelemiyor. Size başka bir öğrenci arıyoruz."]
    there.matching.accept(next_student, task_id)


def test_student_leaves_lists_and_counters_of_redis(town: Town) -> None:
    there = town.there
    first, second = there.student(100.0), there.student(200.0)
    task_id = there.press()
    assert (there.asked(task_id), there.keys(task_id).candidates) == (first.id, [second.id])
    limit = PerUserLimit("location", 60, town.services.settings.redis_url)
    limit.hit(second.id)
    limit.hit(first.id)
    limit.close()
    receipt = town.forget(second.id)
    assert (receipt["rows"]["redis_candidate_lists"], receipt["rows"]["redis_limits"]) == (1, 1)
    assert there.keys(task_id).candidates == []
    assert len(list(there.redis.scan_iter("limit*"))) == 1


def test_coordinator_leaves_no_trace(town: Town) -> None:
    coordinator = town.person(Role.COORDINATOR)
    town.there.coordinator(role=Role.ADMIN)
    town.deliver()
    town.forget(coordinator.id)
    assert town.traces(*MARKERS) == {}


def test_messages_about_others_of_the_same_name_stay(town: Town) -> None:
    there, elder = town.there, town.person(Role.ELDER)
    coordinator = there.coordinator()
    namesake = there.elder(NAME, phone="+905550001122")
    task_id = there.press(namesake)
    there.advance(task_id)
    with town.services.db.transaction() as conn:
        for type_, recipient in (("SMS", "+905550001122"), ("IN_APP", f"user:{namesake.id}")):
            submit_notification(
                conn, EVERYTHING, NewSubmission(NotificationType(type_), recipient, f"Sayın {NAME}"), "90"
            )
    there.run(
        "INSERT INTO in_app_messages (notification_id, user_id, subject, body, data)"
        " SELECT id, recipient_user_id, subject, body, '{}' FROM notifications WHERE task_id IS NOT NULL"
    )
    town.deliver()
    copies = "SELECT body FROM in_app_messages WHERE user_id <> :id ORDER BY id"
    there.run(
        "INSERT INTO action_events (topic, payload) VALUES ('t', json_build_object('a', CAST(:name AS text)))",
        name=NAME,
    )
    client = bare(town.services)
    client.xadd(f"cinga.{Topic.EXECUTED}", {"payload": json.dumps({"elder": NAME})})
    before, copied = there.bodies(coordinator), there.all(copies, id=elder.id)
    assert any(NAME in body for body in before)
    assert len(copied) == 3
    town.forget(elder.id)
    assert there.bodies(coordinator) == before
    assert there.all(copies, id=elder.id) == copied
    # Other services have not read them yet.
    assert there.one("SELECT count(*) AS n FROM action_events").n == client.xlen(f"cinga.{Topic.EXECUTED}") == 1
    assert len(there.all("SELECT 1 FROM notifications WHERE body = :body", body=f"Sayın {NAME}")) == 2
    assert there.one("SELECT name FROM users WHERE id = :id", id=namesake.id).name == NAME


def test_short_device_id_is_not_taken_for_a_word(town: Town) -> None:
    there, elder = town.there, town.there.elder("A")
    with town.services.db.transaction() as conn:
        users.put_device(conn, elder.id, users.DeviceRegistration("gel", "geldi", Platform.ANDROID))
        others = NewSubmission(NotificationType.EMAIL, "nobetci@ornek.org", "Kargo geldi. A")
        submit_notification(conn, EVERYTHING, others, "90")
    town.deliver()
    town.forget(elder.id)
    assert [row.body for row in there.all("SELECT body FROM notifications")] == ["Kargo geldi. A"]


def test_message_that_a_worker_is_sending_is_waited_for(town: Town) -> None:
    there, student = town.there, town.person(Role.STUDENT)
    elder = there.elder(at=PLACE)
    task_id = there.press(elder)
    there.matching.accept(student, task_id)
    db = town.services.db
    with db.transaction() as conn:
        taken = claim(conn, NotificationType.PUSH, 100, 30, followers=FOLLOWERS).taken
    assert any(FIRST in one.notification.body for one in taken)
    finished = threading.Event()

    def send_while_we_wait(_seconds: float) -> None:
        if not finished.is_set():
            record_all(town.services, taken)
            finished.set()

    waiting = replace(town.forgetting, sleep=send_while_we_wait)
    forget_person(waiting, student.id)
    assert finished.is_set()
    assert town.traces(*MARKERS) == {}


def test_repeated_call_is_harmless_and_says_so(town: Town) -> None:
    elder = town.person(Role.ELDER)
    town.there.press(elder, NOTE)
    first = town.forget(elder.id)
    second = town.forget(elder.id)
    assert (first["already_forgotten"], second["already_forgotten"]) == (False, True)
    assert ["firebase_account" in str(receipt["stays"]) for receipt in (first, second)] == [True, False]
    assert second["rows"]["users"] == 0
    assert town.there.one("SELECT count(*) AS n FROM audit_entries").n == 2


class DyingDatabase:
    """Raises at the beginning of a later transaction."""

    def __init__(self, db: Database, transactions: int) -> None:
        self._db = db
        self._left = transactions

    def transaction(self) -> Any:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return self._db.transaction()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def test_call_that_is_interrupted_anywhere_is_finished_by_a_repeated_one(town: Town) -> None:
    elder = town.person(Role.ELDER)
    town.there.coordinator()
    town.there.press(elder, NOTE)
    town.deliver()
    interrupted = 0
    while True:
        parts: Any = replace(town.forgetting, db=DyingDatabase(town.services.db, interrupted))
        try:
            forget_person(parts, elder.id)
            break
        except KeyboardInterrupt:
            interrupted += 1
            assert town.traces(*MARKERS) != {}
    assert interrupted >= 9
    assert town.traces(*MARKERS, *place_marks(town)) == {}


def test_dry_run_counts_and_changes_nothing(town: Town) -> None:
    elder = town.person(Role.ELDER)
    task_id = town.there.press(elder, NOTE)
    before = town.traces(*MARKERS)
    receipt = town.forget(elder.id, dry_run=True)
    assert receipt["dry_run"]
    assert receipt["rows"]["notifications"] >= 5
    assert town.traces(*MARKERS) == before
    assert town.there.status(task_id) == "PENDING" or town.there.status(task_id) == "TIMED_OUT"


def test_audit_entries_that_name_the_person_are_counted_in_the_receipt(town: Town) -> None:
    elder = town.person(Role.ELDER)
    db = town.services.db
    entry = Notification(uuid7(), "AUDIT", "kayit", "Elle atandı", f"{NAME} için", Priority.NORMAL, db.now(), {})
    with db.transaction() as conn:
        audit_trail.append(conn, [entry])
    receipt = town.forget(elder.id)
    [kept] = [item for item in receipt["stays"] if item["what"] == "audit_entries"]
    assert kept["rows"] == 1
    assert town.traces(NAME) == {"audit_entries": [NAME]}
    assert verify_audit_trail(db).broken_id is None


def test_last_active_admin_is_refused(town: Town) -> None:
    admin = town.there.coordinator(role=Role.ADMIN)
    town.there.coordinator(role=Role.ADMIN, active=False)
    with pytest.raises(LastAdmin):
        town.forget(admin.id)
    town.there.coordinator("Elif Aydın", role=Role.ADMIN)
    town.forget(admin.id)
    assert town.there.one("SELECT name FROM users WHERE id = :id", id=admin.id).name == users.FORGOTTEN


def test_unknown_user_is_refused(town: Town) -> None:
    with pytest.raises(UserNotFound, match="no user with the id 4711"):
        town.forget(4711)


def test_command_prints_the_receipt(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    elder = town.person(Role.ELDER)
    settings = town.services.settings
    assert manage_users.main(settings, ["forget", str(elder.id)]) == 1
    assert "Nothing was forgotten. Repeat with --yes" in capsys.readouterr().err
    assert manage_users.main(settings, ["forget", str(elder.id), "--yes"]) == 0
    receipt = json.loads(capsys.readouterr().out)
    assert (receipt["user_id"], receipt["role"], receipt["dry_run"]) == (elder.id, "ELDER", False)
    assert town.traces(*MARKERS) == {}
    assert manage_users.main(settings, ["forget", "4711", "--yes"]) == 1
    assert capsys.readouterr().err == "There is no user with the id 4711.\n"


def test_running_action_of_the_person_is_cancelled_and_others_go_on(town: Town) -> None:
    person, other = town.person(Role.ELDER), town.there.elder("Hatice Demir", phone="+905550002233")
    plan = town.harness.plan({"channel_type": "sms", "audience": "PERSON"})
    own = town.harness.ask(plan, person.id, variables={"elder": NAME})
    about = town.harness.ask(plan, other.id, variables={"elder": NAME, "phone": int(PHONE), "n": 905, "id": ID})
    town.forget(person.id)
    assert town.harness.status(own) == "CANCELLED"
    # Callers write phone numbers as numbers, too, and ids may contain a short name by chance.
    assert town.harness.action(about).variables == {
        "elder": "Talep sahibi",
        "phone": "Talep sahibi",
        "n": 905,
        "id": ID,
    }
    assert town.harness.status(about) == "RUNNING"


def test_address_in_a_step_that_is_still_to_be_sent_is_forgotten(town: Town) -> None:
    coordinator, other = town.person(Role.COORDINATOR), town.there.elder("Hatice Demir", phone="+905550002233")
    harness = town.harness
    plan = harness.plan(
        {"channel_type": "sms", "audience": "ROUTES", "on_failure": "CONTINUE"}, {"channel_type": "sms"}
    )
    harness.sql("UPDATE recipient_channels SET verify_status = 'verified'")
    harness.route(plan, 1, harness.sql("SELECT id FROM recipient_profiles WHERE user_id IS NOT NULL")[0].id)
    action = harness.ask(plan, other.id, evaluation_key=f"kural {PHONE}")
    town.forget(coordinator.id)
    assert harness.status(action) == "RUNNING"
    assert town.traces(*MARKERS) == {}
    while harness.status(action) == "RUNNING":
        assert harness.conductor.run_once() + harness.deliver("sms")
    assert town.traces(*MARKERS) == {}
    assert "+905550002233" in {one.recipient for one in harness.notifications(action)}


def test_couple_with_one_phone_is_told_apart(town: Town) -> None:
    there, elder = town.there, town.person(Role.ELDER)
    wife = there.elder("Hatice Demir", phone=PHONE)
    with town.services.db.transaction() as conn:
        profile = PROFILES.create(conn, {"name": "Hatice Demir", "user_id": wife.id}, RULES)
        CHANNELS.create(conn, {"profile_id": profile.id, "channel_type": "sms", "target": PHONE}, RULES)
        submit_notification(
            conn, EVERYTHING, NewSubmission(NotificationType.SMS, PHONE, "Hatice Hanım, ilacınız geldi"), "90"
        )
    town.forget(elder.id)
    assert [row.target for row in there.all("SELECT target FROM recipient_channels WHERE enabled")] == [PHONE]
    [message] = there.all("SELECT * FROM notifications WHERE body LIKE 'Hatice%'")
    assert (message.status, message.recipient) == ("ACCEPTED", PHONE)
    assert NAME not in str(town.traces(NAME))
    town.forget(wife.id)
    assert town.traces(*MARKERS) == {}


def test_addresses_of_the_directory_and_grouped_digits_are_forgotten(town: Town) -> None:
    coordinator, mail = town.person(Role.COORDINATOR), "zumrud@ornek.org"
    with town.services.db.transaction() as conn:
        profile = PROFILES.create(conn, {"name": NAME}, RULES)
        CHANNELS.create(conn, {"profile_id": profile.id, "channel_type": "sms", "target": PHONE}, RULES)
        own = PROFILES.create(conn, {"name": "Z", "user_id": coordinator.id}, RULES)
        CHANNELS.create(conn, {"profile_id": own.id, "channel_type": "email", "target": mail}, RULES)
        for recipient, body in (
            (mail, "Merhaba"),
            ("a@ornek.org", mail),
            ("b@ornek.org", "(555) 765 43 21, 0555-765-43-21"),
        ):
            submit_notification(conn, EVERYTHING, NewSubmission(NotificationType.EMAIL, recipient, body), "90")
    town.forget(coordinator.id)
    assert town.traces(*MARKERS, mail, "765 43", "765-43") == {}


def test_jobs_and_notes_of_others_that_name_the_person_are_forgotten(town: Town) -> None:
    there, elder = town.there, town.person(Role.ELDER)
    other = there.elder("Hatice Demir", phone="+905550002233")
    task_id = there.press(other, f"Anahtar komşusu {NAME} teyzede, {NATIONAL}")
    there.matching.say_outcome(there.coordinator(), task_id, TaskOutcome.HELPED_BY_OTHERS, f"{NAME} gitti")
    for column, status in (
        ("output", "SUCCEEDED"),
        ("output", "QUEUED"),
        ("error", "FAILED"),
        ("claimed_by", "FAILED"),
    ):
        there.run(
            f"INSERT INTO jobs (id, name, task_type, origin, max_retries, {column}, status, finished_at) VALUES"
            " (gen_random_uuid(), 'greet', 'io_bound', 'CLI', 1, :words, CAST(:status AS text),"
            " CASE WHEN :status <> 'QUEUED' THEN clock_timestamp() END)",
            words=f"Merhaba {NAME}", status=status,
        )  # fmt: skip
    there.run("UPDATE jobs SET claimed_by = NULL, max_retries = 0 WHERE claimed_by IS NOT NULL")
    there.run(
        "INSERT INTO job_artifacts (id, job_id, name, size, content)"
        " SELECT gen_random_uuid(), id, 'a.txt', 9, convert_to(:words, 'UTF8') FROM jobs WHERE max_retries = 0",
        words=f"Merhaba {NAME}",
    )
    receipt = town.forget(elder.id)
    assert receipt["rows"]["jobs"] == 3
    assert [item["rows"] for item in receipt["stays"] if item["what"] == "jobs"] == [1]
    assert [row.status for row in there.all("SELECT status FROM jobs")] == ["QUEUED"]
    assert there.one("SELECT count(*) AS n FROM job_artifacts").n == 0
    note = there.one("SELECT note FROM tasks WHERE id = :id", id=task_id).note
    assert note == "Anahtar komşusu Talep sahibi teyzede, Talep sahibi"
    assert there.one("SELECT note FROM task_outcomes").note == "Talep sahibi gitti"


def test_message_that_is_being_sent_all_the_time_is_an_error_that_a_repeated_call_mends(town: Town) -> None:
    elder = town.person(Role.ELDER)
    with town.services.db.transaction() as conn:
        taken = claim(conn, NotificationType.SMS, 100, 30, followers=FOLLOWERS).taken
    with pytest.raises(StillSending, match="Repeat the command"):
        forget_person(replace(town.forgetting, sent_within_s=0.01), elder.id)
    record_all(town.services, taken)
    town.forget(elder.id)
    assert town.traces(*MARKERS) == {}


def test_phone_is_not_registered_for_somebody_who_was_deactivated_meanwhile(town: Town) -> None:
    """The request was let in before."""
    elder = town.person(Role.ELDER)
    town.forget(elder.id)
    with pytest.raises(UserDeactivated), town.services.db.transaction() as conn:
        users.put_device(conn, elder.id, users.DeviceRegistration(DEVICE, TOKEN, Platform.ANDROID))


def test_messages_are_locked_in_portions() -> None:
    notifications = tuple(FoundNotification(uuid7(), None, True, False) for _ in range(AT_ONCE + 1))
    found = FoundTraces(notifications, (FoundAction(uuid7(), True, False),), (1,), (2,))
    parts = list(found.portions())
    assert [(len(one.notifications), len(one.actions), one.channels) for one in parts] == [
        (AT_ONCE, 1, (1,)),
        (1, 0, (1,)),
    ]
    assert notifications == (*parts[0].notifications, *parts[1].notifications)


def test_a_forgotten_person_is_bound_to_no_list(town: Town):
    """The row is the publisher's. A change of it brings a new user; the forgotten one stays forgotten."""
    elders = ListedPeople(town.services, ELDERS)
    elders.follow({ID: row(NAME, PHONE, home=PLACE)})
    forgotten = elders.user_id(ID)
    receipt = town.forget(forgotten)
    assert receipt["rows"]["roster_people"] == 1
    assert {"what": "roster_rows", "why": WHY["roster_rows"], "rows": 1} in receipt["stays"]
    assert town.traces(NAME, PHONE).keys() == {"roster_rows"}
    elders.follow({ID: row(NAME, PHONE, home=PLACE)})
    assert elders.user_id(ID) != forgotten
    with town.services.db.transaction() as conn:
        assert users.known_person(conn, forgotten).is_forgotten
