"""Requests of actions by stream: each is carried out once, whichever process is killed, and each invalid one gets a
result."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import ANY

import pytest

from app.api.services import Services
from app.db.database import Database, DatabaseUnavailable
from app.delivery.actions import service as actions
from app.delivery.actions.intake import GROUP, Intake
from app.delivery.actions.result_format import Topic
from app.redis_store.contract import RedisUnavailable
from app.redis_store.streams import Inlet
from app.users.models import Caller, Role
from tests.support import mishaps
from tests.support.depth import passages
from tests.support.streams import PREFIX, add_plan, ask, bare, event_payloads, requested, rows, unanswered, wait_until

STREAM = f"{PREFIX}.{Topic.REQUESTED}"
KEYS = "SELECT evaluation_key FROM actions ORDER BY id"
DEAD_LETTERS = "SELECT * FROM dead_letters ORDER BY id"

ANY_CALLER = Caller(0, Role.ADMIN, "", "tr", None)
Open = Callable[..., Intake]


@pytest.fixture
def client(services: Services) -> Iterator[Any]:
    client = bare(services)
    yield client
    client.close()


@pytest.fixture
def open_intake(services: Services) -> Iterator[Open]:
    opened: list[Intake] = []

    def open_one(request: Any = actions.request_actions, **options: Any) -> Intake:
        inlet = Inlet(services.settings.redis_url, STREAM, GROUP, block_s=0.05)
        opened.append(Intake(services.db, inlet, request=request, **options))
        return opened[-1]

    yield open_one
    for intake in opened:
        intake.close()


def keys(db: Database) -> list[str]:
    return [row.evaluation_key for row in rows(db, KEYS)]


def test_request_becomes_an_action_with_all_its_values(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    ask(client, requested("kapı-1", plan, variables={"oda": "mutfak"}, priority="HIGH"))
    assert open_intake().run_once() == 1
    (action,) = rows(db, "SELECT * FROM actions")
    assert (action.action_plan_id, action.origin, action.variables) == (plan, "STREAM", {"oda": "mutfak"})
    assert action.context == {
        "trace_id": "act-kapı-1",
        "device_id": "400000011D081B70",
        "stream_id": 9823412,
        "group_id": 12,
        "rule_id": 114,
    }
    assert unanswered(client) == 0


def test_requests_older_than_the_first_executor_are_taken(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    for number in range(250):
        ask(client, requested(f"k-{number}", plan))
    intake = open_intake()
    assert [intake.run_once() for _ in range(4)] == [100, 100, 50, 0]
    assert keys(db) == [f"k-{number}" for number in range(250)]


def test_repeated_key_is_carried_out_once(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    ask(client, requested("twice", plan))
    ask(client, requested("twice", plan))
    intake = open_intake()
    intake.run_once()
    ask(client, requested("twice", plan))
    intake.run_once()
    assert keys(db) == ["twice"]
    assert (unanswered(client), rows(db, DEAD_LETTERS)) == (0, [])


def test_two_executors_make_one_action_of_fifty_equal_requests(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    for number in range(50):
        ask(client, requested("same", plan))
        ask(client, requested(f"other-{number % 5}", plan))
    intakes = [open_intake(), open_intake()]
    together = threading.Barrier(2)

    def work(intake: Intake) -> None:
        together.wait()
        while intake.run_once():
            pass

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, intakes))
    assert sorted(keys(db)) == ["other-0", "other-1", "other-2", "other-3", "other-4", "same"]
    assert (unanswered(client), rows(db, DEAD_LETTERS)) == (0, [])


def test_executor_killed_before_the_ack_leaves_a_harmless_repeat(
    services: Services, db: Database, client: Any, open_intake: Open
):
    plan = add_plan(db)
    ask(client, requested("once", plan))
    ask(client, "no request at all")
    assert mishaps.Step(services.settings, "intake.committed=kill@1", "take_in", ANY_CALLER, None, "").end().died
    assert (keys(db), len(rows(db, DEAD_LETTERS)), unanswered(client)) == (["once"], 1, 2)
    patient, eager = open_intake(idle_s=30.0), open_intake(idle_s=0.0)
    assert patient.run_once() == 0, "the requests of a slow executor were taken from it"
    assert eager.run_once() == 2
    assert (keys(db), len(rows(db, DEAD_LETTERS)), unanswered(client)) == (["once"], 1, 0)
    assert [len(event_payloads(db, topic)) for topic in (Topic.DEAD_LETTER, Topic.FAILED)] == [1, 1]


def test_abandoned_request_is_found_behind_those_in_progress(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    ids = [ask(client, requested(f"k-{number}", plan)) for number in range(1500)]
    client.xgroup_create(STREAM, GROUP, id="0")
    client.xreadgroup(GROUP, "at work", {STREAM: ">"}, count=2000)
    client.xclaim(STREAM, GROUP, "gone", 0, [ids[-1]], idle=60_000)
    assert open_intake().run_once() == 1
    assert keys(db) == ["k-1499"]


@pytest.mark.parametrize("place", ["sql.statement", "sql.commit", "sql.committed", "intake.committed"])
def test_killed_executor_loses_nothing_and_repeats_nothing(
    services: Services, db: Database, client: Any, open_intake: Open, place: str
):
    plan = add_plan(db)
    for turn, passage in enumerate(passages(30), 1):
        ask(client, requested(f"k-{turn}", plan))
        ask(client, f"broken {turn}")
        step = mishaps.Step(services.settings, f"{place}=kill@{passage}", "take_in", ANY_CALLER, None, "")
        died = step.end().died
        open_intake(idle_s=0.0).run_once()
        assert keys(db) == [f"k-{number}" for number in range(1, turn + 1)]
        assert len(rows(db, DEAD_LETTERS)) == turn == len(event_payloads(db, Topic.FAILED))
        assert unanswered(client) == 0
        if not died:
            assert passage > 1, f"the intake never passes {place}"
            return
    raise AssertionError("30 passages did not reach the end of a run")


def test_invalid_request_is_one_dead_letter_and_one_result(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    ask(client, requested("before", plan))
    ask(client, requested("no-such-plan", plan + 1))
    ask(client, requested("bad", plan, variables={"a": "\0"}))
    ask(client, b"\xff\xfe")
    client.xadd(STREAM, {"something": "else"})
    ask(client, requested("after", plan))
    intake = open_intake()
    assert intake.run_once() == 6
    assert intake.run_once() == 0
    assert keys(db) == ["before", "after"]
    assert unanswered(client) == 0
    dead_letters = rows(db, DEAD_LETTERS)
    assert [(one.channel_type, one.error_code, one.action_plan_id, one.retryable) for one in dead_letters] == [
        ("action", "PLAN_NOT_FOUND", plan + 1, False),
        ("action", "INVALID_REQUEST", plan, False),
        ("action", "INVALID_REQUEST", None, False),
        ("action", "INVALID_REQUEST", None, False),
    ]
    published = event_payloads(db, Topic.DEAD_LETTER)
    assert [one["dead_letter_id"] for one in published] == [str(one.id) for one in dead_letters]
    assert published[0]["trace_id"] == "act-no-such-plan"
    failed = event_payloads(db, Topic.FAILED)
    assert failed[0]["context"] == {"device_id": "400000011D081B70", "stream_id": 9823412}
    assert failed[0]["meta"]["trace_id"] == "act-no-such-plan"
    assert failed[0]["data"] == {
        "group_id": 12,
        "rule_id": 114,
        "action_plan_id": plan + 1,
        "step_order": None,
        "channel_type": "action",
    }
    assert failed[0]["error"] == {
        "failed_stage": "action_execute",
        "error_code": "PLAN_NOT_FOUND",
        "error_message": "There is no such plan, or it is switched off or retired.",
        "retryable": False,
        "failed_at": ANY,
    }
    assert "\0" not in json.dumps(published + failed)


def test_one_key_cannot_request_two_plans_or_other_variables(db: Database, client: Any, open_intake: Open):
    plan, other = add_plan(db), add_plan(db)
    for plan_id in (plan, other, plan):
        ask(client, requested("shared", plan_id))
    ask(client, requested("shared", plan, variables={"degrees": 41}))
    ask(client, requested("after", other))
    intake = open_intake()
    assert (intake.run_once(), intake.run_once()) == (5, 0)
    assert [row.action_plan_id for row in rows(db, "SELECT * FROM actions ORDER BY id")] == [plan, other]
    refused = rows(db, "SELECT * FROM dead_letters WHERE channel_type = 'action' ORDER BY action_plan_id")
    assert [(one.error_code, one.action_plan_id) for one in refused] == [
        ("EVALUATION_KEY_REUSED", plan),
        ("EVALUATION_KEY_REUSED", other),
    ]


def test_request_for_an_unknown_user_does_not_stop_the_intake(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    ask(client, requested("nobody", plan, person_id=2**62))
    ask(client, requested("after", plan))
    assert open_intake().run_once() == 2
    assert keys(db) == ["after"]
    (dead_letter,) = rows(db, "SELECT * FROM dead_letters WHERE channel_type = 'action'")
    assert dead_letter.error_code == "INVALID_REQUEST"
    assert dead_letter.error_message.endswith("personId is not the id of a user.")


def test_internal_error_refuses_only_its_request(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)

    def fail(conn: Any, new: Any) -> Any:
        if any(one.evaluation_key == "stone" for one in new):
            raise RuntimeError("with words that nobody may read")
        return actions.request_actions(conn, new)

    for key in ("before", "stone", "after"):
        ask(client, requested(key, plan))
    intake = open_intake(fail)
    assert (intake.run_once(), intake.run_once()) == (3, 0)
    assert keys(db) == ["before", "after"]
    (dead_letter,) = rows(db, DEAD_LETTERS)
    assert dead_letter.error_code == "REQUEST_FAILED"


def test_emptied_redis_is_read_from_the_beginning(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    ask(client, requested("old", plan))
    intake = open_intake()
    intake.run_once()
    client.flushdb()
    ask(client, requested("old", plan))
    ask(client, requested("new", plan))
    with pytest.raises(RedisUnavailable):
        intake.run_once()
    assert intake.run_once() == 2
    assert (keys(db), unanswered(client)) == (["old", "new"], 0)


def test_intake_survives_an_emptied_redis_while_it_waits(
    services: Services, db: Database, client: Any, open_intake: Open
):
    plan = add_plan(db)
    stop = threading.Event()
    inlet = Inlet(services.settings.redis_url, STREAM, GROUP, block_s=5.0)
    intake = Intake(db, inlet)
    worker = threading.Thread(target=intake.run, args=(stop,))
    worker.start()
    try:
        wait_until(lambda: client.client_list(_type="normal") and "xreadgroup" in str(client.client_list()))
        client.flushdb()
        ask(client, requested("new", plan))
        wait_until(lambda: keys(db) == ["new"])
    finally:
        stop.set()
        worker.join(10)
        intake.close()


def test_batch_is_kept_while_the_database_is_away(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    away = [True]

    def request(conn: Any, new: Any) -> Any:
        if away[0]:
            raise DatabaseUnavailable("away")
        return actions.request_actions(conn, new)

    ask(client, requested("patience", plan))
    intake = open_intake(request)
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            intake.run_once()
    assert (keys(db), rows(db, DEAD_LETTERS), unanswered(client)) == ([], [], 1)
    away[0] = False
    assert intake.run_once() == 1
    assert (keys(db), unanswered(client)) == (["patience"], 0)


def test_foreign_key_at_the_name_of_the_stream_does_not_stop_the_intake(db: Database, client: Any, open_intake: Open):
    client.set(STREAM, "a string")
    intake = open_intake()
    with pytest.raises(RedisUnavailable):
        intake.run_once()
    client.delete(STREAM)
    ask(client, requested("after all", add_plan(db)))
    assert intake.run_once() == 1


def test_closed_intake_removes_its_consumer(db: Database, client: Any, open_intake: Open):
    plan = add_plan(db)
    intake, other = open_intake(), open_intake()
    for one in (intake, other):
        ask(client, requested("some", plan))
        one.run_once()
    assert len(client.xinfo_consumers(STREAM, GROUP)) == 2
    intake.close()
    assert len(client.xinfo_consumers(STREAM, GROUP)) == 1


def test_unfinished_requests_of_a_closed_intake_are_left_to_others(db: Database, client: Any, open_intake: Open):
    def database_away(_conn: Any, _new: Any) -> None:
        raise DatabaseUnavailable("away")

    ask(client, requested("heirloom", add_plan(db)))
    leaving = open_intake(database_away)
    with pytest.raises(DatabaseUnavailable):
        leaving.run_once()
    leaving.close()
    assert unanswered(client) == 1
    assert open_intake(idle_s=0.0).run_once() == 1
    assert keys(db) == ["heirloom"]
