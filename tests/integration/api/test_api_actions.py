"""Actions and dead letters over HTTP and through the command line."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from app.__main__ import COMMANDS
from app.api.services import Services
from app.bootstrap.api import create_app
from app.cli import manage_dead_letters
from app.delivery.actions.requests import NewAction
from app.delivery.actions.service import request_actions
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letters import NewDeadLetter
from tests.support.streams import rows
from tests.support.world import World, authorization, settle_world

ACTIONS, DEAD_LETTERS = "/api/v1/actions", "/api/v1/dead-letters"


@pytest.fixture
def world(services: Services) -> World:
    return settle_world(services)


@pytest.fixture
def client(services: Services, world: World) -> Iterator[Any]:
    app = create_app(services)
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = authorization(world, services, "admin")["Authorization"]
    yield client


def asked(world: World, **changes: Any) -> dict[str, Any]:
    return {"actionPlanId": world.entries["planId"], "evaluationKey": "rule-114:9"} | changes


# Actions


def test_action_is_accepted_and_shown_with_its_steps(client: Any, world: World):
    body = asked(
        world,
        variables={"degrees": 41},
        deviceId="400000011D081B70",
        streamId=9823412,
        groupId=12,
        ruleId=114,
        traceId="act-9f3f",
        priority="HIGH",
        expiresAt="2099-01-01T00:00:00+03:00",
    )
    response = client.post(ACTIONS, json=body)
    assert response.status_code == 202
    shown = response.json
    assert response.headers["Location"] == f"{ACTIONS}/{shown['id']}"
    assert {name: shown[name] for name in body if name != "expiresAt"} == {
        name: value for name, value in body.items() if name != "expiresAt"
    }
    assert (shown["expiresAt"], shown["origin"]) == ("2098-12-31T21:00:00Z", "HTTP")
    assert [(step["stepOrder"], step["channelType"]) for step in shown["steps"]] == [(1, "webhook")]
    assert client.get(response.headers["Location"]).json == shown


OTHERS: list[dict[str, Any]] = [
    {"variables": {"degrees": 42}},
    {"variables": {}},
    {"deviceId": "400000011D081B71"},
    {"personId": 1},
]


@pytest.mark.parametrize("change", OTHERS, ids=str)
def test_evaluation_key_of_another_request_is_refused(client: Any, world: World, change: dict[str, Any]):
    body = asked(world, variables={"degrees": 41, "place": "sera"}, deviceId="400000011D081B70")
    change = change | ({"personId": world.ids["elder"]} if "personId" in change else {})
    first = client.post(ACTIONS, json=body)
    repeated = asked(
        world,
        variables={"place": "sera", "degrees": 41},
        deviceId="400000011D081B70",
        traceId="another",
        priority="LOW",
    )
    assert client.post(ACTIONS, json=repeated).json["id"] == first.json["id"]
    refused = client.post(ACTIONS, json=body | change)
    assert (refused.status_code, refused.get_json(force=True)["code"]) == (409, "evaluation_key_reused")


def test_evaluation_keys_belong_to_who_asked(client: Any, services: Services, world: World):
    mine = client.post(ACTIONS, json=asked(world, variables={"degrees": 41}))
    theirs = client.post(
        ACTIONS, json=asked(world, variables={"degrees": 30}), headers=authorization(world, services, "coordinator")
    )
    assert (mine.status_code, theirs.status_code) == (202, 202)
    assert mine.json["id"] != theirs.json["id"]
    with services.db.transaction() as conn:
        (of_stream,) = request_actions(conn, [NewAction(world.entries["planId"], evaluation_key="rule-114:9")])
    assert of_stream.is_new
    assert client.post(ACTIONS, json=asked(world, variables={"degrees": 41})).json["id"] == mine.json["id"]


def test_action_shows_only_the_end_of_a_token(client: Any, services: Services, world: World):
    with services.db.transaction() as conn:
        conn.execute(
            text(
                "UPDATE recipient_channels SET channel_type = 'push', target = 'token-secret-1234', target_meta = '{}'"
            )
        )
        conn.execute(text("UPDATE recipient_channels SET verify_status = 'verified', enabled = true"))
        conn.execute(text("UPDATE action_plan_steps SET channel_type = 'push', template_key = NULL"))
    shown = client.post(ACTIONS, json=asked(world))
    assert shown.status_code == 202
    assert "…1234" in shown.get_data(as_text=True)
    for answer in (shown, client.get(shown.headers["Location"]), client.get(ACTIONS)):
        assert "token-secret" not in answer.get_data(as_text=True)


def test_text_that_postgresql_cannot_store_fails_only_its_step(client: Any, services: Services, world: World):
    with services.db.transaction() as conn:
        conn.execute(text(r"""UPDATE message_templates SET body = '{{ "\x00" }}'"""))
        conn.execute(text("UPDATE recipient_channels SET verify_status = 'verified', enabled = true"))
        conn.execute(text("UPDATE action_plan_steps SET template_key = 'matching.on_the_way'"))
    shown = client.post(ACTIONS, json=asked(world))
    assert shown.status_code == 202
    assert shown.json["steps"][0]["errorCode"] == "TEMPLATE_RENDER_FAILED"


def test_repeated_key_returns_the_same_action(client: Any, world: World):
    first, second = (client.post(ACTIONS, json=asked(world)) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json["id"] == second.json["id"]
    other = client.post(ACTIONS, json={"planKey": "matching.on_the_way", "evaluationKey": "rule-114:9"})
    assert (other.status_code, other.json["code"]) == (409, "evaluation_key_reused")


def test_fifty_parallel_requests_with_one_key_make_one_action(services: Services, world: World):
    app = create_app(services)
    headers = authorization(world, services, "coordinator")

    def ask(_: int) -> tuple[int, str]:
        response = app.test_client().post(ACTIONS, json=asked(world, evaluationKey="storm"), headers=headers)
        return response.status_code, response.get_json(force=True).get("id")

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(ask, range(50)))
    assert sorted(status for status, _ in answers) == [200] * 49 + [202]
    assert len({id_ for _, id_ in answers}) == 1
    assert rows(services.db, "SELECT count(*) AS n FROM actions WHERE evaluation_key = 'storm'")[0].n == 1


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"actionPlanId": None}, 400, "invalid_value"),
        ({"planKey": "matching.offer"}, 400, "invalid_value"),
        ({"actionPlanId": 999_999}, 404, "plan_not_found"),
        ({"personId": 999_999}, 400, "invalid_value"),
        ({"variables": {"a": "\0"}}, 400, "invalid_value"),
        ({"variables": {"a": "x" * 20_000}}, 400, "invalid_value"),
        ({"variables": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {}}}}}}}}}}, 400, "invalid_value"),
        ({"variables": []}, 400, "invalid_input"),
        ({"evaluationKey": ""}, 400, "invalid_input"),
        ({"evaluationKey": "k" * 201}, 400, "invalid_input"),
        ({"evaluationKey": "a\0b"}, 400, "invalid_input"),
        ({"priority": "SOON"}, 400, "invalid_input"),
        ({"unheardOf": 1}, 400, "invalid_input"),
    ],
)
def test_invalid_action_is_refused_at_once(
    client: Any, services: Services, world: World, changes: dict[str, Any], status: int, code: str
):
    body = {name: value for name, value in asked(world, **changes).items() if value is not None}
    response = client.post(ACTIONS, json=body)
    assert (response.status_code, response.get_json(force=True)["code"]) == (status, code)
    assert rows(services.db, "SELECT count(*) AS n FROM actions WHERE evaluation_key = 'rule-114:9'")[0].n == 0


def test_full_backlog_refuses_actions(services: Services, world: World):
    full = services.settings.model_copy(update={"notification_backlog_limit": 1})
    app = create_app(Services(**{**vars(services), "settings": full}))
    response = app.test_client().post(ACTIONS, json=asked(world), headers=authorization(world, services, "admin"))
    assert (response.status_code, response.get_json(force=True)["code"]) == (503, "backlog_full")
    assert int(response.headers["Retry-After"]) >= 1


def test_actions_are_listed_newest_first_and_filtered(client: Any, world: World):
    ids = [client.post(ACTIONS, json=asked(world, evaluationKey=f"k-{n}")).json["id"] for n in range(3)]
    plan = world.entries["planId"]
    first = client.get(f"{ACTIONS}?limit=2&actionPlanId={plan}").json
    assert [item["id"] for item in first["items"]] == [ids[2], ids[1]]
    rest = client.get(f"{ACTIONS}?limit=2&actionPlanId={plan}&cursor={first['nextCursor']}").json
    assert [item["id"] for item in rest["items"]] == [ids[0], str(world.entries["actionId"])]
    assert client.get(f"{ACTIONS}?status=CANCELLED").json["items"] == []
    assert client.get(f"{ACTIONS}?cursor=nonsense").status_code == 400


# Dead letters


def write(services: Services, number: int = 1, **changes: Any) -> list[str]:
    new_dead_letters = [
        NewDeadLetter(**({"channel_type": "email", "error_code": "INVALID_ADDRESS", "retryable": False} | changes))
        for _ in range(number)
    ]
    with services.db.transaction() as conn:
        dead_letters.write(conn, new_dead_letters)
    return [str(dead_letter.id) for dead_letter in new_dead_letters]


def test_dead_letter_shows_all_its_fields(client: Any, world: World):
    shown = client.get(f"{DEAD_LETTERS}/{world.entries['deadLetterId']}").json
    assert shown["status"] == "OPEN"
    assert (shown["channelType"], shown["errorCode"], shown["retryCount"]) == ("push", "UNREACHABLE", 2)
    assert shown["errorMessage"] == "The provider cannot be reached."
    assert shown["retryable"] is True
    assert client.get("/api/notifications/" + shown["notificationId"]).json["status"] == "DEAD"


def test_dead_letters_are_filtered_and_paginated(client: Any, services: Services, world: World):
    ids = write(services, 3, action_plan_id=21)
    first = client.get(f"{DEAD_LETTERS}?channelType=email&limit=2").json
    assert [item["id"] for item in first["items"]] == [ids[2], ids[1]]
    rest = client.get(f"{DEAD_LETTERS}?channelType=email&limit=2&cursor={first['nextCursor']}").json
    assert ([item["id"] for item in rest["items"]], rest["nextCursor"]) == ([ids[0]], None)
    for query, number in (
        ("errorCode=INVALID_ADDRESS&actionPlanId=21", 3),
        ("errorCode=UNREACHABLE", 1),
        ("status=OPEN", 5),
        ("status=REDRIVEN", 0),
        ("since=2099-01-01T00:00:00Z", 0),
        ("until=2099-01-01T00:00:00Z", 5),
    ):
        assert len(client.get(f"{DEAD_LETTERS}?{query}").json["items"]) == number, query


def test_dead_letter_is_redriven_once(client: Any, services: Services, world: World):
    path = f"{DEAD_LETTERS}/{world.entries['deadLetterId']}"
    shown = client.post(f"{path}/redrive")
    assert (shown.status_code, shown.json["status"]) == (200, "REDRIVEN")
    assert shown.json["closedBy"] == world.ids["admin"]
    assert client.get(f"/api/notifications/{shown.json['notificationId']}").json["status"] == "ACCEPTED"
    again = client.post(f"{path}/redrive")
    assert (again.status_code, again.get_json(force=True)["code"]) == (409, "dead_letter_closed")


def test_refused_redrive_names_the_reason(client: Any, services: Services, world: World):
    (nothing,) = write(services, channel_type="action", error_code="INVALID_REQUEST")
    refused = client.post(f"{DEAD_LETTERS}/{nothing}/redrive")
    assert (refused.status_code, refused.get_json(force=True)["code"]) == (409, "dead_letter_not_redrivable")
    with services.db.transaction() as conn:
        conn.execute(text("UPDATE notifications SET expires_at = clock_timestamp() WHERE status = 'DEAD'"))
    late = client.post(f"{DEAD_LETTERS}/{world.entries['deadLetterId']}/redrive")
    assert (late.status_code, late.get_json(force=True)["code"]) == (409, "dead_letter_expired")


def test_all_matching_dead_letters_are_redriven(client: Any, services: Services, world: World):
    write(services, 2)
    empty = client.post(f"{DEAD_LETTERS}/redrive", json={})
    assert (empty.status_code, empty.get_json(force=True)["errors"][0]["field"]) == (400, "all")
    assert client.post(f"{DEAD_LETTERS}/redrive", json={"channelType": "sms"}).json == {
        "redriven": 0,
        "skipped": 0,
        "remaining": 0,
    }
    # One is a notification, the other a step without recipients.
    done = client.post(f"{DEAD_LETTERS}/redrive", json={"all": True})
    assert done.json == {"redriven": 2, "skipped": 2, "remaining": 0}


def test_dead_letters_are_discarded(client: Any, services: Services, world: World):
    path = f"{DEAD_LETTERS}/{world.entries['deadLetterId']}"
    shown = client.post(f"{path}/discard")
    assert (shown.status_code, shown.json["status"]) == (200, "DISCARDED")
    assert shown.json["closedBy"] == world.ids["admin"]
    for way in ("discard", "redrive"):
        again = client.post(f"{path}/{way}")
        assert (again.status_code, again.get_json(force=True)["code"]) == (409, "dead_letter_closed")
    assert client.post(f"{DEAD_LETTERS}/{world.task_id}/discard").status_code == 404
    assert client.post(f"{DEAD_LETTERS}/discard", json={}).status_code == 400
    write(services, 2)
    done = client.post(f"{DEAD_LETTERS}/discard", json={"errorCode": "INVALID_ADDRESS"})
    assert done.json == {"discarded": 2, "remaining": 0}
    assert len(client.get(f"{DEAD_LETTERS}?status=OPEN").json["items"]) == 1


def test_metrics_count_open_dead_letters(client: Any, services: Services, world: World):
    write(services, 2)
    shown = client.get("/metrics").get_data(as_text=True)
    assert re.search(r"^yaninda_dead_letters_open 4\.0$", shown, re.MULTILINE)


# Command line


def run(services: Services, capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = manage_dead_letters.main(services.settings, list(argv))
    out, err = capsys.readouterr()
    return code, out, err


def test_command_dead_letters_exists():
    assert COMMANDS["dead-letters"][0] == manage_dead_letters.__name__


def test_command_lists_open_dead_letters(services: Services, world: World, capsys: pytest.CaptureFixture[str]):
    (mail,) = write(services, action_plan_id=21, step_order=2)
    code, out, _ = run(services, capsys, "list")
    titles, first, nobody, second = out.splitlines()
    assert code == 0
    assert titles.split() == ["ID", "FAILED", "PLAN", "STEP", "CHANNEL", "TRIES", "STATUS", "ERROR", "WHAT", "HAPPENED"]
    assert re.fullmatch(rf"{mail} +\S+ \S+ +21 +2 +email +1 +OPEN +INVALID_ADDRESS +The address is not .*", first)
    assert re.search(rf" {world.entries['planId']} +1 +webhook +1 +OPEN +NO_RECIPIENT +Nobody is to be reached", nobody)
    assert re.fullmatch(r"\S+ +\S+ \S+ +- +- +push +3 +OPEN +UNREACHABLE +The provider cannot be reached\.", second)
    assert run(services, capsys, "list", "--channel", "sms")[1] == "No dead letters match.\n"
    assert len(run(services, capsys, "list", "--plan", "21", "--since", "2020-01-01")[1].splitlines()) == 2
    assert "There are more than these 1" in run(services, capsys, "list", "--limit", "1")[1]


def test_command_shows_one_dead_letter(services: Services, world: World, capsys: pytest.CaptureFixture[str]):
    _, out, _ = run(services, capsys, "show", str(world.entries["deadLetterId"]))
    assert "Error:        UNREACHABLE: The provider cannot be reached.\n" in out
    assert "Retries:      2 after the first try; another try may help\n" in out
    assert "Trace" not in out


def test_command_redrives_one_dead_letter(services: Services, world: World, capsys: pytest.CaptureFixture[str]):
    id_ = str(world.entries["deadLetterId"])
    assert run(services, capsys, "redrive", id_) == (0, "Redriven: it is sent again now.\n", "")
    assert run(services, capsys, "redrive", id_) == (1, "", "This dead letter is closed already.\n")
    unknown = "00000000-0000-7000-8000-000000000000"
    assert run(services, capsys, "redrive", unknown) == (1, "", "There is no such dead letter.\n")
    assert "REDRIVEN" in run(services, capsys, "list", "--status", "ALL")[1]


def test_command_redrives_all_and_shows_progress(services: Services, world: World, capsys: pytest.CaptureFixture[str]):
    with services.db.transaction() as conn:
        conn.execute(
            text(
                "INSERT INTO notifications"
                " (id, notification_type, recipient, subject, body, status, due_at, finished_at)"
                " SELECT gen_random_uuid(), 'SMS', '+905550100000', '', 'x', 'DEAD', NULL, now()"
                " FROM generate_series(1, 450)"
            )
        )
        ids = conn.execute(text("SELECT id FROM notifications WHERE notification_type = 'SMS'")).scalars().all()
        new_dead_letters = [NewDeadLetter("sms", "TIMEOUT", retryable=True, notification_id=id_) for id_ in ids]
        dead_letters.write(conn, new_dead_letters)
    write(services, channel_type="sms", error_code="TIMEOUT")
    code, out, err = run(services, capsys, "redrive", "--all", "--code", "TIMEOUT")
    assert code == 0
    assert out.splitlines() == [
        "Redriven: 450.",
        "Skipped: 1, which have expired or never became a notification.",
        "`dead-letters discard` closes them.",
    ]
    assert err.splitlines() == ["200 redriven, 250 to go", "400 redriven, 50 to go"]
    assert run(services, capsys, "redrive")[0] == 1
    assert run(services, capsys, "redrive", "--code", "TIMEOUT")[0] == 1
    assert run(services, capsys, "redrive", str(ids[0]), "--all")[0] == 1


def test_command_discards_one_or_all(services: Services, world: World, capsys: pytest.CaptureFixture[str]):
    write(services, 250, channel_type="action", error_code="INVALID_REQUEST")
    id_ = str(world.entries["deadLetterId"])
    assert run(services, capsys, "discard", id_)[:2] == (
        0,
        "Discarded: it stays on record, but no longer counts for the alarm.\n",
    )
    assert run(services, capsys, "discard", id_) == (1, "", "This dead letter is closed already.\n")
    assert run(services, capsys, "discard")[0] == 1
    assert run(services, capsys, "discard", "--all", "--channel", "action") == (
        0,
        "Discarded: 250.\n",
        "200 discarded, 50 to go\n",
    )
    assert "Status:       DISCARDED\n" in run(services, capsys, "show", id_)[1]


def test_command_and_api_show_no_address(
    client: Any, services: Services, world: World, capsys: pytest.CaptureFixture[str]
):
    out = run(services, capsys, "list")[1] + run(services, capsys, "show", str(world.entries["deadLetterId"]))[1]
    out += json.dumps(client.get(DEAD_LETTERS).json)
    assert "+90" not in out
    assert "Bu mesaj" not in out
