"""The checker of the torture catches every broken promise when it is planted, and nothing when all is well.

The world is made by the service itself, in a database of its own without any constraint, so that what PostgreSQL
would refuse can be planted there too. Each plant is rolled back.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
import structlog
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from app.bootstrap.build_services import build_services
from app.cli.migrate import upgrade
from app.db.database import psycopg_url
from app.db.wake import Announcer
from app.delivery.actions.conductor import Conductor
from app.delivery.channels.audit import AuditChannel
from app.delivery.channels.recording import RecordingChannel
from app.delivery.channels.registry import Channels
from app.delivery.messages.rules import DeliveryRules
from app.delivery.role import FOLLOWERS
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation.logs import configure_logs
from app.jobs.checks.questions_of_lateness import OVERDUE
from app.settings.settings import Settings
from app.users.models import LatLon
from tests.conftest import SECRET
from tests.support.breakers import MemoryBreakers
from tests.support.matching import ANY_MOMENT, Neighbourhood
from tests.torture import checker, downtime, history_triggers, order, redis_loss
from tests.torture.answers import AnswerLog
from tests.torture.fault_windows import AFTERMATH_S, Window, broken_s
from tests.torture.people import Person, Place
from tests.torture.roles import Instance, Roles
from tests.torture.rules import AT_REST

Conn = psycopg.Connection[Any]
NOWHERE = LatLon(0, 0)


@dataclass(frozen=True)
class Town:
    """`done` was completed by Ali, who is nearest; for `over`, Banu said no and Ali let the time pass."""

    url: str
    ids: dict[str, Any]
    redis_url: str

    def place(self, *students: str) -> Place:
        def person(name: str) -> Person:
            return Person(self.ids[name], "", NOWHERE)

        return Place(NOWHERE, [person("hatice")], [person(name) for name in students])


@pytest.fixture(scope="module")
def town(database_url: str, redis_url: str) -> Iterator[Town]:
    server = make_url(psycopg_url(database_url))
    name = f"{server.database}_loose"
    maintenance = create_engine(server, isolation_level="AUTOCOMMIT")
    with maintenance.connect() as conn:
        conn.execute(text(f'CREATE DATABASE "{name}" TEMPLATE template0'))
    url = server.set(database=name, drivername="postgresql").render_as_string(hide_password=False)
    engine = create_engine(psycopg_url(url))
    upgrade(engine)
    engine.dispose()
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(history_triggers.STUDENTS)
        conn.execute(history_triggers.PUSHES)
    yield Town(url, _live_a_day(url, redis_url), redis_url)
    with maintenance.connect() as conn:
        conn.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    maintenance.dispose()


def _live_a_day(url: str, redis_url: str) -> dict[str, Any]:
    services = build_services(Settings(database_url=url, redis_url=redis_url, auth_secret=SECRET), pool_size=4)
    post = Dispatcher(
        services.db,
        services.clock,
        Channels([RecordingChannel(services.db), AuditChannel(services.db)]),
        announcer=Announcer(url),
        followers=FOLLOWERS,
        breakers=MemoryBreakers(),
    )
    conductor = Conductor(services.db, DeliveryRules.from_settings(services.settings))
    there = Neighbourhood(services)
    zeynep, ayse, hatice = there.coordinator(), there.elder(), there.elder("Hatice Demir")
    ali, banu = there.students(100, 200)
    done = there.press(ayse)
    for word in (there.matching.accept, there.matching.start, there.matching.complete):
        word(ali, done)
    over = there.press(hatice)
    post.run_once()
    there.matching.reject(banu, over)
    post.run_once()
    there.expire(over)
    post.run_once()
    conductor.run_once()
    there.close()
    services.close()
    with psycopg.connect(url, autocommit=True) as conn:
        for statement in _constraints(conn):
            conn.execute(statement)
    people = {"zeynep": zeynep, "ayse": ayse, "hatice": hatice, "ali": ali, "banu": banu}
    return {"done": done, "over": over} | {name: person.id for name, person in people.items()}


def _constraints(conn: Conn) -> list[Any]:
    """Statements that take away whatever keeps nonsense out of the tables."""
    checks = """
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', conrelid::regclass, conname) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'u') AND conrelid <> 0
      AND coninhcount = 0
      AND conrelid::regclass::text <> 'spatial_ref_sys'"""
    found = [row[0] for row in conn.execute(checks)]
    indexes = """
    SELECT format('DROP INDEX IF EXISTS %s', indexrelid::regclass) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE c.relnamespace = 'public'::regnamespace AND i.indisunique AND NOT i.indisprimary"""
    return [*found, *(row[0] for row in conn.execute(indexes))]


@pytest.fixture
def conn(town: Town) -> Iterator[Conn]:
    with psycopg.connect(town.url) as connected:
        connected.execute("SET session_replication_role = replica")  # so that the diary does not hear of plants
        yield connected
        connected.rollback()


@pytest.fixture
def client(town: Town) -> Iterator[Any]:
    connected = redis.Redis.from_url(town.redis_url, decode_responses=True)
    connected.flushdb()
    connected.set("clockwork_complete", "1")
    yield connected
    connected.flushdb()
    connected.close()


def at_rest(conn: Conn, client: Any, answer_log: AnswerLog | None = None, *windows: Window) -> set[str]:
    found = checker.check_at_rest(conn, client, checker.Evidence(answer_log or AnswerLog(), windows))
    return {violation.promise for violation in found}


def test_all_is_well_where_nothing_is_planted(conn: Conn, client: Any, town: Town) -> None:
    assert checker.check_at_rest(conn, client, checker.Evidence()) == []
    assert order.check_order(conn, [town.place("banu", "ali")], 1000) == []


LIVE = "UPDATE offers SET state = 'PENDING', closed_at = NULL, deadline = clock_timestamp() + interval '1 h'"
COPY = """
INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority, status,
                           metadata, task_id, created_at, expires_at, due_at, attempts, failures, finished_at{also})
SELECT gen_random_uuid(), notification_type, recipient, recipient_user_id, subject, body, priority, status, metadata,
       task_id, created_at, expires_at, due_at, attempts, failures, finished_at{also}
FROM notifications WHERE metadata -> 'data' ->> 'type' = '{kind}'"""
KIND = "metadata -> 'data' ->> 'type'"
FORGET = "DELETE FROM notifications WHERE " + KIND + " = '{kind}'"
BOTH_OF_OVER = "task_id = %(over)s AND offered_at IS NOT NULL"

TOLD_TWICE = """
INSERT INTO actions (id, action_plan_id, status, origin, person_id, task_id, data, steps, finished_at)
SELECT gen_random_uuid(), action_plan_id, status, origin, person_id, task_id, data, steps, finished_at
FROM actions WHERE data ->> 'type' = '{kind}'"""

PLANTS = {
    # at any moment
    "two live offers for one student": f"{LIVE} WHERE student_id = %(ali)s",
    "two live offers for one task": f"{LIVE} WHERE {BOTH_OF_OVER}",
    "two open tasks for one student": "UPDATE tasks SET status = 'ASSIGNED', student_id = %(ali)s",
    "two open tasks for one elder": "UPDATE tasks SET status = 'PENDING', elder_id = %(ayse)s",
    "open_task_id that is not the student's open task": "UPDATE students SET open_task_id = %(done)s",
    "a live offer of a task that is not searching": f"{LIVE} WHERE task_id = %(over)s AND student_id = %(ali)s",
    "a live offer to a student who cannot take it": f"{LIVE} WHERE student_id = %(ali)s;"
    "UPDATE students SET on_duty = false WHERE id = %(ali)s",
    "an assigned task without an accepted offer": "UPDATE tasks SET status = 'STARTED', student_id = %(banu)s",
    "an accepted offer of a task that its student does not have": "UPDATE offers SET state = 'ACCEPTED'",
    "counts of asked and skipped that differ from the offers": "UPDATE tasks SET asked = asked + 1",
    "a search without next_step_at": "UPDATE tasks SET status = 'PENDING', next_step_at = NULL",
    "next_step_at later than the live offer's deadline": f"{LIVE} WHERE task_id = %(over)s AND student_id = %(ali)s;"
    "UPDATE tasks SET status = 'PENDING', next_step_at = clock_timestamp() + interval '2 h' WHERE id = %(over)s",
    "next_step_at of a task that has ended": "UPDATE tasks SET next_step_at = clock_timestamp()",
    "a task whose status and ended_at disagree": "UPDATE tasks SET ended_at = NULL WHERE id = %(done)s",
    "an offer whose state and closed_at disagree": "UPDATE offers SET closed_at = NULL",
    "an offer without a notification to its student": FORGET.format(kind="OFFER"),
    "an offer with two notifications": COPY.format(also="", kind="OFFER"),
    "a search that timed out without exactly one notice to the elder": COPY.format(also="", kind="NOBODY_FOUND"),
    "an offer of which its student was not told": "DELETE FROM actions WHERE data ->> 'type' = 'OFFER'",
    "a person who was told the same twice": TOLD_TWICE.format(kind="NOBODY_FOUND_FOR"),
    "an elder without exactly one notice that nobody was found": """
        DELETE FROM actions WHERE data ->> 'type' = 'NOBODY_FOUND'""",
    # in the history
    "a notification that was given up without a dead letter": "UPDATE notifications SET status = 'DEAD'",
    "an elder without exactly one notice that the task is completed": TOLD_TWICE.format(kind="COMPLETED"),
    "a search that timed out, and no coordinator was told": """
        DELETE FROM actions WHERE data ->> 'type' = 'NOBODY_FOUND_FOR'""",
    "a student whose two rows disagree about being active": "UPDATE users SET active = false WHERE id = %(ali)s",
    # at rest
    "a task that has not ended": "UPDATE tasks SET status = 'STARTED' WHERE id = %(done)s",
    "an offer that is still live": f"{LIVE} WHERE task_id = %(over)s AND student_id = %(ali)s",
    "two accepted offers for one task": "UPDATE offers SET state = 'ACCEPTED' WHERE task_id = %(over)s",
    "a student who was asked twice for one task": """
        INSERT INTO offers (task_id, student_id, state, offered_at, deadline, closed_at)
        SELECT task_id, student_id, state, offered_at, deadline, closed_at FROM offers""",
    "an offer that ended before its deadline": "UPDATE offers SET deadline = closed_at + interval '1 ms'",
    "an offer accepted after its deadline": "UPDATE offers SET closed_at = deadline + interval '1 s'",
    "an offer made after the search was over": "UPDATE tasks SET search_until = created_at - interval '1 min'",
    "two offers live at the same time for one task": """
        UPDATE offers SET closed_at = closed_at + interval '1 min' WHERE task_id = %(over)s""",
    "two offers live at the same time for one student": """
        UPDATE offers SET state = 'EXPIRED', closed_at = closed_at + interval '1 min' WHERE task_id = %(done)s""",
    "a notification that has not ended": "UPDATE notifications SET status = 'SENDING'",
    "two notifications of one step to the same address": COPY.format(also=", action_id, step_order", kind="ON_THE_WAY"),
    "an action that has not ended": "UPDATE actions SET status = 'RUNNING'",
    "a notification that was given up": "UPDATE notifications SET status = 'EXPIRED'",
    "an offer that was not pushed while it was live": """
        UPDATE offers SET deadline = deadline + interval '1 min', closed_at = closed_at + interval '1 min';
        UPDATE notifications SET status = 'EXPIRED'""",
    "a cancelled notification of an offer that was not withdrawn": "UPDATE notifications SET status = 'CANCELLED'",
    "a sent notification that no device received": "DELETE FROM recorded_pushes",
    "a sent notification that missed a device": """
        INSERT INTO devices (device_id, user_id, token, platform) VALUES ('new', %(ayse)s, 'new', 'ANDROID')""",
    "a push without a notification": "UPDATE recorded_pushes SET notification_id = gen_random_uuid()",
    "a notification recorded twice for one device": """
        INSERT INTO recorded_pushes (notification_id, user_id, device_id, data)
        SELECT notification_id, user_id, device_id, data FROM recorded_pushes""",
    "a message sent twice to one address within a lease": """
        INSERT INTO notification_attempts (notification_id, attempt, device_id, outcome, at)
        SELECT notification_id, attempt + 1, device_id, outcome, at FROM notification_attempts""",
    "an elder without exactly one message that nobody was found": FORGET.format(kind="NOBODY_FOUND"),
    "a coordinator without exactly one message that nobody was found": COPY.format(also="", kind="NOBODY_FOUND_FOR"),
    "an elder without exactly one message that the task is completed": COPY.format(also="", kind="COMPLETED"),
    "a student whose count of completed tasks is wrong": "UPDATE students SET completed = completed + 1",
}


@pytest.mark.parametrize("promise", PLANTS)
def test_a_planted_violation_is_caught(conn: Conn, client: Any, town: Town, promise: str) -> None:
    for statement in PLANTS[promise].split(";"):
        conn.execute(statement, town.ids)
    assert promise in at_rest(conn, client)


def test_every_question_has_been_seen_to_find_something() -> None:
    assert set(PLANTS) == set(ANY_MOMENT) | set(checker.HISTORY) | set(AT_REST)


# ---- what is overdue on a live copy ----

AN_HOUR_AGO = "clock_timestamp() - interval '1 h'"
LATE_PLANTS = {
    "an offer live long after its deadline": f"UPDATE offers SET state = 'PENDING', deadline = {AN_HOUR_AGO}",
    "a task whose next step is long overdue": f"UPDATE tasks SET status = 'STARTED', next_step_at = {AN_HOUR_AGO}",
    "a search that goes on long after its limit": f"UPDATE tasks SET status = 'PENDING', search_until = {AN_HOUR_AGO}",
    "an offer that was closed long after its deadline": "UPDATE offers SET closed_at = deadline + interval '40 s'"
    " WHERE state = 'EXPIRED'",
    "a notification that waits too long": f"UPDATE notifications SET status = 'RETRYING', due_at = {AN_HOUR_AGO}",
    "an action that waits too long": f"UPDATE actions SET status = 'RUNNING', due_at = {AN_HOUR_AGO}",
    "an action that waits for nothing": f"UPDATE actions SET status = 'RUNNING', created_at = {AN_HOUR_AGO}",
}
LATENESS = {question.name: question.sql for question in OVERDUE}


@pytest.mark.parametrize("promise", LATENESS)
def test_what_is_long_overdue_is_caught_and_what_is_due_a_moment_is_not(conn: Conn, town: Town, promise: str) -> None:
    assert checker.ask(conn, LATENESS) == []
    conn.execute(LATE_PLANTS[promise], town.ids)
    assert promise in {violation.promise for violation in checker.ask(conn, LATENESS)}
    conn.rollback()
    conn.execute(LATE_PLANTS[promise].replace("interval '1 h'", "interval '2 s'").replace("40 s", "2 s"), town.ids)
    assert promise not in {violation.promise for violation in checker.ask(conn, LATENESS)}


def test_an_action_whose_notification_will_wake_it_does_not_wait_for_nothing(conn: Conn) -> None:
    conn.execute(LATE_PLANTS["an action that waits for nothing"])
    conn.execute("UPDATE notifications SET status = 'RETRYING'")
    assert "an action that waits for nothing" not in {violation.promise for violation in checker.ask(conn, LATENESS)}


# ---- words ----


def words(town: Town, word: str, task: str, student: str) -> AnswerLog:
    answer_log = AnswerLog()
    answer_log.confirm(word, str(town.ids[task]), town.ids[student])
    return answer_log


@pytest.mark.parametrize(
    ("word", "task", "student"),
    [("accept", "done", "ali"), ("complete", "done", "ali"), ("reject", "over", "banu")],
)
def test_a_word_that_was_kept_is_no_violation(conn: Conn, client: Any, town: Town, word: str, task: str, student: str):
    assert at_rest(conn, client, words(town, word, task, student)) == set()


@pytest.mark.parametrize(
    ("word", "task", "student"),
    [
        ("accept", "over", "ali"),
        ("accept", "done", "banu"),
        ("reject", "over", "ali"),
        ("withdraw", "over", "ali"),
        ("assign", "over", "banu"),
        ("complete", "over", "ali"),
        ("cancel", "done", "ayse"),
    ],
)
def test_a_yes_that_did_not_last_is_caught(conn: Conn, client: Any, town: Town, word: str, task: str, student: str):
    found = at_rest(conn, client, words(town, word, task, student))
    assert found == {f"{word} was answered with 200 and did not last"}


def test_a_request_that_got_201_and_is_lost_is_caught(conn: Conn, client: Any) -> None:
    answer_log = AnswerLog()
    answer_log.pressed(201, "0190d5a1-0000-7000-8000-000000000000", None)
    assert at_rest(conn, client, answer_log) == {"a task that was answered with 201 and does not exist"}


def test_two_tasks_for_one_key_are_caught(conn: Conn, client: Any, town: Town) -> None:
    answer_log = AnswerLog()
    task_id = str(town.ids["done"])
    answer_log.pressed(201, task_id, "key")
    answer_log.pressed(200, task_id, "key")
    assert at_rest(conn, client, answer_log) == set()
    answer_log.pressed(200, "another", "key")
    assert at_rest(conn, client, answer_log) == {"two tasks for one Idempotency-Key"}


def test_a_key_that_met_an_open_task_is_still_unused(conn: Conn, client: Any, town: Town) -> None:
    answer_log = AnswerLog()
    answer_log.pressed(200, str(town.ids["over"]), "key")
    answer_log.pressed(201, str(town.ids["done"]), "key")
    assert at_rest(conn, client, answer_log) == set()


@pytest.mark.parametrize(
    ("status", "code", "retry_after"),
    [(400, "bad_request", None), (401, "unauthenticated", None), (500, None, None), (503, "unavailable", None)],
)
def test_an_answer_that_must_not_be_given_is_caught(
    conn: Conn, client: Any, status: int, code: str | None, retry_after: str | None
) -> None:
    answer_log = AnswerLog()
    answer_log.answered("PUT /tasks/1/accept", status, code, retry_after)
    assert at_rest(conn, client, answer_log) == {"an answer that the API must not give"}


def test_an_answer_that_says_when_to_try_again_is_allowed(conn: Conn, client: Any) -> None:
    answer_log = AnswerLog()
    answer_log.answered("PUT /tasks/1/accept", 503, "database_unavailable", "2")
    assert at_rest(conn, client, answer_log) == set()


# ---- time ----

LATE = "an offer that was closed too long after its deadline"
OUTLIVED = "UPDATE offers SET closed_at = deadline + interval '20 s' WHERE state = 'EXPIRED'"


def test_an_offer_that_outlived_its_deadline_is_caught(conn: Conn, client: Any) -> None:
    conn.execute(OUTLIVED)
    assert LATE in at_rest(conn, client)


@pytest.mark.parametrize(("broken_s", "excused"), [(2.0, False), (13.0, True)])
def test_what_was_broken_meanwhile_is_not_counted(conn: Conn, client: Any, broken_s: float, excused: bool) -> None:
    conn.execute(OUTLIVED)
    row = conn.execute("SELECT extract(epoch FROM deadline)::float8 FROM offers WHERE state = 'EXPIRED'").fetchone()
    assert row is not None
    window = Window("postgres killed", row[0] + 1, row[0] + 1 + broken_s)
    assert (LATE not in at_rest(conn, client, None, window)) == excused


def test_windows_that_overlap_are_counted_once() -> None:
    windows = [Window("a", 10, 12), Window("b", 11, 13), Window("c", 40, 41)]
    assert broken_s(windows, 0, 30) == 13 + AFTERMATH_S - 10


def test_an_offer_shown_after_its_deadline_is_caught(conn: Conn, client: Any) -> None:
    conn.execute("UPDATE recorded_pushes SET shown_at = shown_at + interval '1 h'")
    assert "an offer that was shown after its deadline" in at_rest(conn, client)


def test_a_step_that_nobody_takes_is_caught(conn: Conn, client: Any) -> None:
    conn.execute("UPDATE tasks SET status = 'PENDING', next_step_at = clock_timestamp() - interval '10 s'")
    assert "next_step_at long in the past" in at_rest(conn, client)


@pytest.mark.parametrize("state", ["PENDING", "WITHDRAWN"])
def test_an_offer_that_outlived_its_deadline_is_caught_whatever_became_of_it(
    conn: Conn, client: Any, state: str
) -> None:
    closed_at = "NULL" if state == "PENDING" else "deadline + interval '20 s'"
    conn.execute(
        f"UPDATE offers SET deadline = clock_timestamp() - interval '30 s' WHERE state = 'EXPIRED';"
        f"UPDATE offers SET closed_at = {closed_at}, state = '{state}' WHERE state = 'EXPIRED'"
    )
    assert LATE in at_rest(conn, client)


# ---- only clocks are wrong ----


def prompt(conn: Conn) -> set[str]:
    found = checker.check_prompt(conn, time.time() - 3600, time.time())
    return {violation.promise for violation in found}


def an_hour_ago(conn: Conn) -> None:
    """Ali's offer for `over` was made and ran out while only clocks were wrong; it was live for five seconds."""
    conn.execute(
        """
        UPDATE offers SET offered_at = clock_timestamp() - interval '60 s',
               deadline = clock_timestamp() - interval '55 s', closed_at = clock_timestamp() - interval '55 s'
        WHERE state = 'EXPIRED'"""
    )


def test_what_ran_out_in_time_is_no_violation(conn: Conn) -> None:
    an_hour_ago(conn)
    conn.execute("UPDATE offers SET closed_at = deadline + interval '1 s' WHERE state = 'EXPIRED'")
    assert prompt(conn) == set()
    assert checker.ran_out(conn, time.time() - 3600, time.time()) == 1


@pytest.mark.parametrize(
    ("plant", "promise"),
    [
        ("UPDATE offers SET closed_at = deadline + interval '3 s'", "late although only clocks are wrong"),
        ("UPDATE offers SET state = 'PENDING', closed_at = NULL", "late although only clocks are wrong"),
        ("UPDATE offers SET closed_at = deadline - interval '1 ms'", "early because clocks are wrong"),
    ],
)
def test_late_or_early_because_of_clocks_is_caught(conn: Conn, plant: str, promise: str) -> None:
    an_hour_ago(conn)
    conn.execute(f"{plant} WHERE state = 'EXPIRED'")
    assert prompt(conn) == {promise}


def test_an_offer_for_whose_push_there_was_time_is_missed(conn: Conn) -> None:
    an_hour_ago(conn)
    conn.execute("UPDATE notifications SET status = 'EXPIRED'")
    assert prompt(conn) == {"not pushed although there was time"}


# ---- after two hours down ----


def overdue(conn: Conn, turns: list[int], *, batch: int = 1) -> None:
    """Ended searches, of which each had one offer; the first to fall due was dealt with as the `turns[0]`th."""
    conn.execute("DELETE FROM offers; DELETE FROM tasks; DELETE FROM notifications")
    for due, done in enumerate(turns):
        if done % batch == 0:
            # Rows of one transaction share its number; a subtransaction has one of its own.
            conn.execute(f"SAVEPOINT batch_{done}")
        conn.execute(
            """
            WITH task AS (
                INSERT INTO tasks (id, status, elder_id, location, created_at, updated_at, search_until, ended_at)
                VALUES (gen_random_uuid(), 'TIMED_OUT', 1, 'POINT(0 0)', now(), now(), now(), now()) RETURNING id
            ), told AS (
                INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, task_id)
                SELECT gen_random_uuid(), 'PUSH', '1', 1, '', '', id FROM task
            )
            INSERT INTO offers (task_id, student_id, state, offered_at, deadline, closed_at)
            SELECT id, 2, 'EXPIRED', now(), now() + %s * interval '1 ms', now() + %s * interval '1 ms' FROM task""",
            [due, 1000 + done],
        )


def judged(conn: Conn, *, batch: int = 1, matchers: int = 1) -> set[str]:
    tasks = [str(row[0]) for row in conn.execute("SELECT id FROM tasks")]
    return {violation.promise for violation in downtime.judge(conn, tasks, 1.0, batch, matchers).violations}


def test_overdue_offers_dealt_with_once_in_their_order_are_no_violation(conn: Conn) -> None:
    overdue(conn, list(range(20)))
    assert judged(conn) == set()


def test_overdue_offers_out_of_their_order_are_caught(conn: Conn) -> None:
    overdue(conn, list(reversed(range(20))))
    assert judged(conn) == {"overdue offers handled out of order"}


def test_one_that_waits_behind_the_others_is_caught(conn: Conn) -> None:
    overdue(conn, [19, *range(19)])
    assert judged(conn) == {"overdue offers handled out of order"}


def test_a_batch_that_a_slow_matcher_holds_is_no_violation(conn: Conn) -> None:
    overdue(conn, [19, *range(19)])
    assert judged(conn, matchers=2) == set()
    overdue(conn, [18, 19, *range(18)])
    assert judged(conn, matchers=2) == {"overdue offers handled out of order"}


def test_whoever_an_event_brings_before_their_turn_takes_nothing_from_the_others(conn: Conn) -> None:
    """The last of all comes first, and the fourth second; without the former the fourth is early by a place more."""
    overdue(conn, [2, 3, 4, 1, *range(5, 20), 0])
    assert judged(conn) == set()


def test_more_at_once_than_a_batch_is_caught(conn: Conn) -> None:
    overdue(conn, list(range(20)), batch=20)
    assert judged(conn) == {"a batch of overdue offers above MATCHER_BATCH"}
    assert judged(conn, batch=20) == set()


@pytest.mark.parametrize(
    "plant",
    [
        "UPDATE offers SET state = 'PENDING' WHERE id = (SELECT min(id) FROM offers)",
        "INSERT INTO offers (task_id, student_id, state, deadline, closed_at)"
        " SELECT task_id, 3, state, deadline, closed_at FROM offers LIMIT 1",
        "UPDATE tasks SET status = 'CANCELLED' WHERE id = (SELECT id FROM tasks LIMIT 1)",
        "DELETE FROM notifications WHERE id = (SELECT id FROM notifications LIMIT 1)",
    ],
)
def test_an_overdue_offer_not_dealt_with_exactly_once_is_caught(conn: Conn, plant: str) -> None:
    overdue(conn, list(range(20)))
    conn.execute(plant)
    assert "an overdue offer that was not handled exactly once" in judged(conn, batch=20)


SENT_AGAIN = """
INSERT INTO push_history (notification_id, device_id, at)
SELECT notification_id, device_id, at + interval '30 s' FROM push_history"""
TWICE = "a push sent twice without a fault that explains it"


def test_a_push_that_was_sent_twice_is_caught(conn: Conn, client: Any) -> None:
    conn.execute(SENT_AGAIN)
    assert at_rest(conn, client) == {TWICE}


@pytest.mark.parametrize(
    ("kind", "excused"), [("delivery died", True), ("delivery paused", True), ("redis flushed", False)]
)
def test_a_death_between_sending_and_recording_excuses_it(conn: Conn, client: Any, kind: str, excused: bool) -> None:
    row = conn.execute("SELECT min(extract(epoch FROM at))::float8 FROM push_history").fetchone()
    assert row is not None
    conn.execute(SENT_AGAIN)
    assert (TWICE not in at_rest(conn, client, None, Window(kind, row[0], row[0] + 60))) == excused


def test_writing_a_push_again_is_heard_of(town: Town) -> None:
    with psycopg.connect(town.url) as conn:
        conn.execute(
            "INSERT INTO recorded_pushes (notification_id, user_id, data) SELECT notification_id, 1, '{}'"
            " FROM recorded_pushes LIMIT 1"
        )
        assert len(conn.execute(checker.SENT_AGAIN).fetchall()) == 1
        conn.rollback()


# ---- what the roles say themselves ----


@pytest.mark.parametrize(
    ("level", "caught"), [("info", False), ("warning", False), ("error", True), ("critical", True)]
)
def test_an_error_that_a_role_reports_is_caught(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], level: str, caught: bool
) -> None:
    """Whatever log lines look like: these are real ones."""
    before = structlog.get_config()
    configure_logs("INFO", False)
    getattr(structlog.get_logger(), level)("due_tasks_failed", error="no error")
    structlog.configure(**before)
    log = tmp_path / "matcher-1.log"
    log.write_text(capsys.readouterr().err)
    assert bool(Roles([Instance("matcher", "matcher-1", {}, log)], random.Random(1)).errors()) == caught


def test_failpoints_tell_when_a_thread_stood_still(tmp_path: Path) -> None:
    log = tmp_path / "delivery-1.log"
    now, monotonic = time.time(), time.monotonic()
    log.write_text(
        f"failpoint pause delivery.sent at {monotonic - 60:.3f} for 2.5 s\n"
        f"failpoint kill sql.commit at {monotonic - 50:.3f} for 0.0 s\nfailpoints are nothing else\n"
    )
    roles = Roles([Instance("delivery", "delivery-1", {}, log)], random.Random(1))
    assert roles.failpoints_hit() == {"failpoint pause delivery.sent": 1, "failpoint kill sql.commit": 1}
    [pause] = roles.pauses()
    assert pause.kind == "delivery paused"
    assert abs(pause.began - (now - 60)) < 0.1 and abs(pause.ended - pause.began - 2.5) < 0.01


def test_a_role_that_falls_over_is_caught(tmp_path: Path) -> None:
    log = tmp_path / "api-1.log"
    log.write_text("Traceback (most recent call last):\nfailpoint kill sql.commit\n")
    assert len(Roles([Instance("api", "api-1", {}, log)], random.Random(1)).errors()) == 1


# ---- order ----


def test_a_calm_place_asked_in_another_order_is_caught(conn: Conn, town: Town) -> None:
    found = order.check_order(conn, [town.place("ali", "banu")], 1000)
    assert {violation.promise for violation in found} == {"a calm place not asked in order of distance"}


def test_a_calm_place_where_somebody_was_left_out_is_caught(conn: Conn, town: Town) -> None:
    conn.execute("DELETE FROM offers WHERE task_id = %(over)s AND student_id = %(ali)s", town.ids)
    assert len(order.calm_disorder(conn, [town.place("banu", "ali")])) == 1


def test_a_student_who_was_passed_over_is_caught(conn: Conn, town: Town) -> None:
    """Ali had helped once and was asked last; had he not, he would have been passed over."""
    conn.execute("UPDATE offers SET completed_this_month = 0")
    conn.execute("UPDATE student_history SET at = at - interval '1 h'")
    conn.execute("DELETE FROM offers WHERE task_id = %(done)s", town.ids)
    found = order.check_order(conn, [], 1000)
    assert [violation.promise for violation in found] == ["a student who was asked after a worse candidate"]


def test_a_student_who_was_busy_elsewhere_was_not_passed_over(conn: Conn, town: Town) -> None:
    conn.execute("UPDATE offers SET completed_this_month = 0")
    conn.execute("UPDATE student_history SET at = at - interval '1 h'")
    conn.execute(
        "UPDATE offers SET closed_at = clock_timestamp() WHERE task_id = %(done)s AND student_id = %(ali)s", town.ids
    )
    assert order.check_order(conn, [], 1000) == []


def test_a_student_who_was_forgotten_is_caught(conn: Conn, town: Town) -> None:
    conn.execute("UPDATE student_history SET at = at - interval '1 h'")
    conn.execute("DELETE FROM offers WHERE task_id = %(over)s AND student_id = %(ali)s", town.ids)
    found = order.check_order(conn, [], 1000)
    assert [violation.promise for violation in found] == ["an eligible student who was never asked"]
    assert order.check_order(conn, [], 50) == []


# ---- Redis ----


@pytest.mark.parametrize(
    "plant",
    [
        ("SET", "pending_assignment:{over}", "1"),
        ("RPUSH", "task_candidates:{over}", "1"),
        ("ZADD", "offer_deadlines", "1", "{over}"),
        ("SET", "clockwork_complete", "rebuild 1"),
    ],
)
def test_what_redis_should_not_hold_at_rest_is_caught(client: Any, town: Town, plant: tuple[str, ...]) -> None:
    client.execute_command(*[word.format(**town.ids) for word in plant])
    assert len(checker.check_redis_is_empty(client)) == 1


def test_redis_and_postgres_that_disagree_are_caught(conn: Conn, client: Any, town: Town) -> None:
    conn.execute(
        "UPDATE tasks SET status = 'ASSIGNED', updated_at = clock_timestamp() - interval '1 h',"
        " next_step_at = '2030-01-01' WHERE id = %(done)s",
        town.ids,
    )
    assert len(checker.check_redis_agrees(conn, client, patience_s=0)) == 1
    client.zadd("offer_deadlines", {str(town.ids["done"]): 1893456000000})
    assert checker.check_redis_agrees(conn, client, patience_s=0) == []


def test_a_live_offer_that_redis_does_not_know_is_caught(conn: Conn, client: Any, town: Town) -> None:
    """Unlike in the rush of a day, an offer that stands still can be compared."""
    make_live(conn, town)
    client.zadd("offer_deadlines", {str(town.ids["over"]): 1893456000000})
    assert len(checker.check_redis_agrees(conn, client, patience_s=0)) == 1
    client.set(f"pending_assignment:{town.ids['over']}", town.ids["ali"])
    assert checker.check_redis_agrees(conn, client, patience_s=0) == []


@pytest.mark.parametrize(
    ("listed", "good"), [((), True), (("ali",), True), (("ali", "banu"), False), (("banu",), False)]
)
def test_a_list_with_somebody_who_was_asked_is_caught(
    conn: Conn, client: Any, town: Town, listed: tuple[str, ...], good: bool
) -> None:
    conn.execute("DELETE FROM offers WHERE task_id = %(over)s AND student_id = %(ali)s", town.ids)
    conn.execute("UPDATE tasks SET status = 'PENDING' WHERE id = %(over)s", town.ids)
    for name in listed:
        client.rpush(f"task_candidates:{town.ids['over']}", town.ids[name])
    assert (redis_loss.check_lists(conn, client, [town.place("banu", "ali")]) == []) == good


def make_live(conn: Conn, town: Town) -> None:
    conn.execute(
        "UPDATE tasks SET status = 'PENDING', updated_at = clock_timestamp() - interval '1 h',"
        " next_step_at = '2030-01-01' WHERE id = %(over)s",
        town.ids,
    )
    conn.execute(
        "UPDATE offers SET state = 'PENDING', closed_at = NULL, deadline = '2030-01-01'"
        " WHERE task_id = %(over)s AND student_id = %(ali)s",
        town.ids,
    )
