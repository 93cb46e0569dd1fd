"""Plans, steps, routes and templates over HTTP, on real stores."""

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.plans.service import retire_step
from tests.support.world import World

PLANS = "/action-plans"
ROUTES = "/action-routes"
TEMPLATES = "/templates"


def refused(answer: tuple[int, Any]) -> list[str]:
    status, problem = answer
    assert status == 400, problem
    return [entry["field"] for entry in problem["errors"]]


def conflict(answer: tuple[int, Any]) -> str:
    status, problem = answer
    assert status == 409, problem
    return problem["code"]


def shipped(ask: Any, key: str) -> str:
    [plan] = ask("GET", f"{PLANS}?key={key}")[1]["items"]
    return f"{PLANS}/{plan['id']}"


@pytest.fixture
def plan(world: World) -> str:
    return f"{PLANS}/{world.entries['planId']}"


# Plans


def test_plan_is_created_shown_changed_and_retired(ask: Any, world: World):
    status, plan = ask("POST", PLANS, {"name": "Sıcaklık", "description": "Sera ısınınca"})
    assert status == 201
    assert plan.items() >= {"key": None, "name": "Sıcaklık", "description": "Sera ısınınca", "status": True}.items()
    path = f"{PLANS}/{plan['id']}"
    assert ask("GET", path) == (200, plan)
    assert ask("PATCH", path, {"status": False})[1]["status"] is False
    assert [one["id"] for one in ask("GET", f"{PLANS}?status=false")[1]["items"]] == [plan["id"]]
    assert ask("DELETE", path) == (204, None)
    assert ask("DELETE", path)[0] == ask("PATCH", path, {})[0] == 404
    status, retired = ask("GET", path)
    assert (status, retired["name"], retired["retiredAt"] is None) == (200, "Sıcaklık", False)
    assert plan["id"] not in [one["id"] for one in ask("GET", f"{PLANS}?limit=100")[1]["items"]]
    assert ask("GET", f"{PLANS}?includeRetired=true&limit=1")[1]["items"][0]["id"] == plan["id"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", ""), ("name", None), ("description", "a" * 501), ("status", "on"), ("key", "matching.offer"), ("x", 1)],
)
def test_refusal_of_a_plan_names_the_field(ask: Any, plan: str, field: str, value: Any):
    assert refused(ask("POST", PLANS, {"name": "Sıcaklık", field: value})) == [field]
    assert refused(ask("PATCH", plan, {field: value})) == [field]


def test_shipped_plan_can_be_edited_but_not_retired_or_emptied(ask: Any, world: World):
    path = shipped(ask, "matching.nobody_found")
    assert conflict(ask("DELETE", path)) == "shipped_plan"
    assert ask("PATCH", path, {"status": False, "name": "Kimse yok"})[0] == 200
    first, second = ask("GET", f"{path}/steps")[1]["items"]
    assert ask("DELETE", f"{path}/steps/{first['id']}")[0] == 204
    assert conflict(ask("DELETE", f"{path}/steps/{second['id']}")) == "shipped_plan"
    assert ask("PATCH", f"{path}/steps/{second['id']}", {"channelType": "whatsapp", "stepOrder": 1})[0] == 200


def test_parallel_retirements_leave_a_shipped_plan_one_step(ask: Any, db: Database, world: World):
    path = shipped(ask, "matching.nobody_found")
    first, second = (step["id"] for step in ask("GET", f"{path}/steps")[1]["items"])
    with ThreadPoolExecutor(1) as pool:
        with db.transaction() as conn:
            retire_step(conn, int(path.rpartition("/")[2]), first)
            other = pool.submit(ask, "DELETE", f"{path}/steps/{second}")
            _wait_until_a_lock_is_awaited(db, other)
        assert conflict(other.result()) == "shipped_plan"


def _wait_until_a_lock_is_awaited(db: Database, other: Future[Any]) -> None:
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    while not other.done():
        with db.transaction() as conn:
            if conn.execute(waiting).scalar_one():
                return


def retired(answer: tuple[int, Any]) -> bool:
    status, shown = answer
    assert status == 200, shown
    return shown["retiredAt"] is not None


def test_retired_plan_retires_its_routes(ask: Any, world: World, plan: str):
    assert ask("DELETE", plan)[0] == 204
    assert retired(ask("GET", f"{ROUTES}/{world.entries['routeId']}"))
    route = {"actionPlanId": world.entries["planId"], "stepOrder": 1, "recipientProfileId": world.entries["profileId"]}
    assert refused(ask("POST", ROUTES, route)) == ["actionPlanId"]


def test_retired_plan_shows_the_steps_that_it_had(ask: Any, world: World, plan: str):
    removed = ask("POST", f"{plan}/steps", {"stepOrder": 2, "channelType": "push"})[1]["id"]
    ask("DELETE", f"{plan}/steps/{removed}")
    kept = world.entries["stepId"]
    assert ask("DELETE", plan)[0] == 204
    assert [one["id"] for one in ask("GET", f"{plan}/steps")[1]["items"]] == [kept]
    assert retired(ask("GET", f"{plan}/steps/{kept}"))
    assert retired(ask("GET", f"{plan}/steps/{removed}"))
    assert ask("POST", f"{plan}/steps", {"stepOrder": 3, "channelType": "push"})[0] == 404
    assert ask("PATCH", f"{plan}/steps/{kept}", {"withinS": 5})[0] == ask("DELETE", f"{plan}/steps/{kept}")[0] == 404


# Steps


STEP = {"stepOrder": 2, "channelType": "push", "audience": "PERSON", "templateKey": "heat.alarm"}
STEP |= {"onFailure": "CONTINUE", "fallback": ["sms", "email"], "withinS": 60, "mayArriveTwice": True}


def test_step_is_created_shown_changed_and_retired(ask: Any, plan: str):
    status, step = ask("POST", f"{plan}/steps", STEP)
    assert status == 201
    assert step.items() >= STEP.items()
    path = f"{plan}/steps/{step['id']}"
    assert ask("GET", path) == (200, step)
    changes = {"templateKey": None, "fallback": [], "withinS": None, "onFailure": "STOP", "mayArriveTwice": False}
    assert ask("PATCH", path, changes)[1].items() >= changes.items()
    assert ask("DELETE", path) == (204, None)
    assert ask("DELETE", path)[0] == ask("PATCH", path, {})[0] == 404
    assert retired(ask("GET", path))
    assert len(ask("GET", f"{plan}/steps")[1]["items"]) == 1


def test_step_with_only_a_type_has_default_values(ask: Any, plan: str):
    step = ask("POST", f"{plan}/steps", {"stepOrder": 3, "channelType": "device_downlink"})[1]
    usual = {"audience": "ROUTES", "templateKey": None, "onFailure": "STOP", "fallback": [], "withinS": None}
    assert step.items() >= usual.items()


def test_steps_are_listed_in_their_order(ask: Any, plan: str):
    for order in (9, 4, 7):
        ask("POST", f"{plan}/steps", {"stepOrder": order, "channelType": "push"})
    page = ask("GET", f"{plan}/steps")[1]
    assert [step["stepOrder"] for step in page["items"]] == [1, 4, 7, 9]
    assert page["nextCursor"] is None


def test_step_belongs_to_one_plan(ask: Any, world: World):
    other = shipped(ask, "matching.offer")
    path = f"{other}/steps/{world.entries['stepId']}"
    assert ask("GET", path)[0] == ask("PATCH", path, {})[0] == ask("DELETE", path)[0] == 404


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("stepOrder", 0, "stepOrder"),
        ("stepOrder", 101, "stepOrder"),
        ("stepOrder", "1", "stepOrder"),
        ("channelType", "pigeon", "channelType"),
        ("channelType", "PUSH", "channelType"),
        ("audience", "EVERYBODY", "audience"),
        ("templateKey", "heat.unknown", "templateKey"),
        ("templateKey", "a b", "templateKey"),
        ("onFailure", "RETRY", "onFailure"),
        ("fallback", ["sms", "pigeon"], "fallback.1"),
        ("fallback", "sms", "fallback"),
        ("fallback", ["sms"] * 9, "fallback"),
        ("withinS", 0, "withinS"),
        ("withinS", 86_401, "withinS"),
        ("mayArriveTwice", "yes", "mayArriveTwice"),
        ("mayArriveTwice", None, "mayArriveTwice"),
        ("actionPlanId", 1, "actionPlanId"),
    ],
)
def test_refusal_of_a_step_names_the_field(ask: Any, world: World, plan: str, field: str, value: Any, named: str):
    assert refused(ask("POST", f"{plan}/steps", STEP | {field: value})) == [named]
    assert refused(ask("PATCH", f"{plan}/steps/{world.entries['stepId']}", {field: value})) == [named]


def test_refusal_of_an_unknown_value_lists_the_known_ones(ask: Any, plan: str):
    problem = ask("POST", f"{plan}/steps", STEP | {"channelType": "pigeon"})[1]
    assert problem["errors"][0]["message"] == (
        "is not one of email, sms, push, in_app, webhook, whatsapp, audit, device_downlink"
    )
    problem = ask("POST", f"{plan}/steps", STEP | {"templateKey": "heat.unknown"})[1]
    assert "heat.alarm, jobs.failed, matching.assigned_to_you, matching.cancelled" in problem["errors"][0]["message"]


def test_step_order_is_unique_in_a_plan(ask: Any, world: World, plan: str):
    assert conflict(ask("POST", f"{plan}/steps", STEP | {"stepOrder": 1})) == "step_order_taken"
    path = f"{plan}/steps/{ask('POST', f'{plan}/steps', STEP)[1]['id']}"
    assert conflict(ask("PATCH", path, {"stepOrder": 1})) == "step_order_taken"
    assert ask("DELETE", f"{plan}/steps/{world.entries['stepId']}")[0] == 204
    assert ask("PATCH", path, {"stepOrder": 1})[1]["stepOrder"] == 1


def test_step_order_is_unique_under_twenty_parallel_requests(ask: Any, plan: str):
    with ThreadPoolExecutor(20) as pool:
        said = Counter(pool.map(lambda _: ask("POST", f"{plan}/steps", STEP)[0], range(20)))
    assert said == {201: 1, 409: 19}


def test_retired_step_retires_its_routes(ask: Any, world: World, plan: str):
    route, step = f"{ROUTES}/{world.entries['routeId']}", f"{plan}/steps/{world.entries['stepId']}"
    ask("PATCH", step, {"stepOrder": 5})
    assert ask("GET", route)[1]["stepOrder"] == 5
    ask("DELETE", step)
    assert retired(ask("GET", route))


# Routes


def test_route_is_created_shown_changed_and_retired(ask: Any, world: World):
    known = world.entries
    body = {"actionPlanId": known["planId"], "stepOrder": 1, "recipientProfileId": 1, "channelType": "sms"}
    status, route = ask("POST", ROUTES, body)
    assert status == 201
    assert route.items() >= (body | {"enabled": True}).items()
    path = f"{ROUTES}/{route['id']}"
    assert ask("GET", path) == (200, route)
    changes = {"recipientProfileId": known["profileId"], "channelType": None, "enabled": False}
    assert ask("PATCH", path, changes)[1].items() >= changes.items()
    by_plan = ask("GET", f"{ROUTES}?actionPlanId={known['planId']}")[1]["items"]
    assert [one["id"] for one in by_plan] == [route["id"], known["routeId"]]
    by_profile = ask("GET", f"{ROUTES}?recipientProfileId=1")[1]["items"]
    assert route["id"] not in [one["id"] for one in by_profile]
    assert ask("DELETE", path) == (204, None)
    assert ask("DELETE", path)[0] == 404
    assert retired(ask("GET", path))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("actionPlanId", 999_999),
        ("actionPlanId", None),
        ("stepOrder", 2),
        ("stepOrder", 0),
        ("recipientProfileId", 999_999),
        ("channelType", "pigeon"),
        ("enabled", None),
        ("priority", 1),
    ],
)
def test_refusal_of_a_route_names_the_field(ask: Any, world: World, field: str, value: Any):
    known = world.entries
    body = {"actionPlanId": known["planId"], "stepOrder": 1, "recipientProfileId": known["profileId"]}
    assert refused(ask("POST", ROUTES, body | {field: value})) == [field]
    assert refused(ask("PATCH", f"{ROUTES}/{known['routeId']}", {field: value})) == [field]


def test_route_needs_a_profile_that_is_not_retired(ask: Any, world: World):
    known = world.entries
    ask("DELETE", "/recipient-profiles/1")
    assert refused(ask("PATCH", f"{ROUTES}/{known['routeId']}", {"recipientProfileId": 1})) == ["recipientProfileId"]


# Templates


def test_template_is_created_shown_changed_and_retired(ask: Any, world: World):
    body = {"key": "heat.warning", "locale": "en", "subject": "{{ name }}", "body": "It is {{ degrees | round }} °C."}
    status, template = ask("POST", TEMPLATES, body)
    assert status == 201
    assert template.items() >= body.items()
    path = f"{TEMPLATES}/{template['id']}"
    assert ask("GET", path) == (200, template)
    assert ask("PATCH", path, {"subject": ""})[1]["subject"] == ""
    assert [one["id"] for one in ask("GET", f"{TEMPLATES}?key=heat.warning&locale=en")[1]["items"]] == [template["id"]]
    assert ask("DELETE", path) == (204, None)
    assert ask("DELETE", path)[0] == ask("POST", f"{path}/preview", {})[0] == 404
    assert retired(ask("GET", path))
    assert ask("POST", TEMPLATES, body)[0] == 201


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("body", "{{ degrees"),
        ("body", "{% for %}"),
        ("body", "{{ degrees | shout }}"),
        ("body", "{{ ''.join([]) }}"),
        ("body", "{% include 'x' %}"),
        ("body", ""),
        ("body", "a" * 10_001),
        ("body", "a\x00"),
        ("subject", "{{ degrees"),
        ("subject", "a\r\nBcc: b@ornek.org"),
        ("subject", None),
    ],
)
def test_template_with_a_syntax_error_is_refused(ask: Any, world: World, field: str, value: Any):
    assert refused(ask("POST", TEMPLATES, {"key": "heat.warning", "body": "40", field: value})) == [field]
    assert refused(ask("PATCH", f"{TEMPLATES}/{world.entries['templateId']}", {field: value})) == [field]
    assert refused(ask("POST", f"{TEMPLATES}/preview", {"body": "40", field: value})) == [field]


@pytest.mark.parametrize(("field", "value"), [("key", ""), ("key", "a b"), ("key", "a" * 101), ("locale", "de")])
def test_template_with_an_invalid_key_or_language_is_refused(ask: Any, world: World, field: str, value: Any):
    assert refused(ask("POST", TEMPLATES, {"key": "heat.warning", "body": "40", field: value})) == [field]
    assert refused(ask("PATCH", f"{TEMPLATES}/{world.entries['templateId']}", {field: value})) == [field]


def test_template_is_unique_for_a_key_and_a_language(ask: Any, world: World):
    assert conflict(ask("POST", TEMPLATES, {"key": "heat.alarm", "body": "40"})) == "template_taken"
    assert ask("POST", TEMPLATES, {"key": "heat.alarm", "locale": "en", "body": "40"})[0] == 201


def test_shipped_template_can_be_edited_but_not_retired(ask: Any, world: World):
    [template] = ask("GET", f"{TEMPLATES}?key=matching.on_the_way&locale=tr")[1]["items"]
    path = f"{TEMPLATES}/{template['id']}"
    assert conflict(ask("DELETE", path)) == "shipped_template"
    assert ask("PATCH", path, {"body": "{{ student }} geliyor!"})[1]["body"] == "{{ student }} geliyor!"


def test_template_of_a_step_cannot_be_retired(ask: Any, world: World, plan: str):
    path = f"{TEMPLATES}/{world.entries['templateId']}"
    step = ask("POST", f"{plan}/steps", STEP)[1]
    assert conflict(ask("DELETE", path)) == "template_in_use"
    ask("PATCH", f"{plan}/steps/{step['id']}", {"templateKey": None})
    assert ask("DELETE", path)[0] == 204


def test_template_can_be_retired_in_one_of_two_languages(ask: Any, world: World, plan: str):
    ask("POST", f"{plan}/steps", STEP)
    english = ask("POST", TEMPLATES, {"key": "heat.alarm", "locale": "en", "body": "40"})[1]
    assert ask("DELETE", f"{TEMPLATES}/{english['id']}")[0] == 204
    assert conflict(ask("DELETE", f"{TEMPLATES}/{world.entries['templateId']}")) == "template_in_use"


def test_preview_shows_the_rendered_text(ask: Any, world: World):
    [template] = ask("GET", f"{TEMPLATES}?key=matching.offer&locale=tr")[1]["items"]
    path = f"{TEMPLATES}/{template['id']}/preview"
    status, words = ask("POST", path, {"variables": {"minutes": 10, "seconds": 600}})
    assert status == 200
    assert words == {
        "subject": "Yeni talep",
        "body": "Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var.",
    }
    status, problem = ask("POST", path, {"variables": {"minutes": 0}})
    assert refused((status, problem)) == ["variables"]
    assert problem["errors"][0]["message"] == "Not given: seconds."
    assert refused(ask("POST", path, {"variables": []})) == ["variables"]


def test_change_of_what_somebody_else_has_changed_is_refused(ask: Any, world: World):
    """Of two admins at once, the later one is told, whether they changed the same field or not."""
    plan = f"{PLANS}/{world.entries['planId']}"
    for path, mine, theirs in (
        (plan, {"name": "Benim"}, {"name": "Onun"}),
        (f"{plan}/steps/{world.entries['stepId']}", {"withinS": 7}, {"onFailure": "CONTINUE"}),
        (f"{TEMPLATES}/{world.entries['templateId']}", {"subject": "Benim"}, {"subject": "Onun"}),
    ):
        seen = {"updatedAt": ask("GET", path)[1]["updatedAt"]}
        status, changed = ask("PATCH", path, theirs | seen)
        assert status == 200 and changed["updatedAt"] > seen["updatedAt"]
        assert conflict(ask("PATCH", path, mine | seen)) == "changed_meanwhile"
        assert ask("GET", path)[1] == changed
        assert ask("PATCH", path, mine | {"updatedAt": changed["updatedAt"]})[0] == 200
        assert refused(ask("PATCH", path, {"updatedAt": "now"})) == ["updatedAt"]
        assert ask("PATCH", path, theirs)[0] == 200, "without it the change is made in any case"


PREVIEW = f"{TEMPLATES}/preview"


def test_words_are_previewed_before_they_are_stored(ask: Any, world: World):
    words = {"subject": "{{ student }}", "body": "{{ student }} {{ minutes }} dakikada gelir."}
    asked = {**words, "variables": {"student": "Ahmet", "minutes": 5}}
    before = ask("GET", TEMPLATES)
    assert ask("POST", PREVIEW, asked) == (200, {"subject": "Ahmet", "body": "Ahmet 5 dakikada gelir."})
    assert ask("POST", PREVIEW, {"body": "Merhaba"}) == (200, {"subject": "", "body": "Merhaba"})
    status, problem = ask("POST", PREVIEW, asked | {"variables": {"student": "Ahmet"}})
    assert refused((status, problem)) == ["variables"]
    assert problem["errors"][0]["message"] == "Not given: minutes."
    assert refused(ask("POST", PREVIEW, {})) == ["body"]
    assert refused(ask("POST", PREVIEW, {"body": "a", "variables": {"a": "x" * 16_400}})) == ["variables"]
    assert ask("GET", TEMPLATES) == before


def test_preview_of_words_names_each_field_that_cannot_be_read(ask: Any, world: World):
    status, problem = ask("POST", PREVIEW, {"subject": "{% if a %}", "body": "a\n{{ b | shout }}"})
    assert refused((status, problem)) == ["subject", "body"]
    assert [one["message"] for one in problem["errors"]] == [
        "cannot be read: if has no endif (line 1)",
        "cannot be read: No filter named 'shout' (line 2)",
    ]


def test_only_coordinators_may_use_these_routes(call: Any, world: World):
    for path in ("recipient-profiles", "recipient-channels", "action-plans", "action-routes", "templates"):
        assert call("student", "GET", f"/api/v1/{path}").status_code == 403
        assert call("admin", "GET", f"/api/v1/{path}").status_code == 200


@pytest.mark.parametrize("value", ["x" * 16_400, "\0", [[[[[[[[[]]]]]]]]]])
def test_preview_accepts_the_same_variables_as_an_action(ask: Any, world: World, value: Any):
    path = f"{TEMPLATES}/{ask('GET', TEMPLATES)[1]['items'][0]['id']}/preview"
    status, problem = ask("POST", path, {"variables": {"a": value}})
    assert (status, problem["errors"][0]["field"]) == (400, "variables")
