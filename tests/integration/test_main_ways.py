"""docs/architecture.md lists the functions of the five main ways. Each way is run here and compared with its list."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.bootstrap.api import create_app
from app.bootstrap.delivery import build_channels, build_delivery
from app.bootstrap.matcher import build_matcher
from app.delivery.actions.conductor import Conductor
from app.delivery.contract import DeliveryRules
from tests.support.matching import Neighbourhood, eventually
from tests.support.pages import ROOT
from tests.support.traces import Call, traced
from tests.support.world import World, authorization, settle_world

WAYS = (ROOT / "docs" / "architecture.md").read_text().split("\n## The five main ways\n")[1].split("\n## ")[0]
LISTED = re.compile(r"`([\w/]+\.py)`\s+`(\w+)`")
ACTION_FOLLOWS = "[An action](#an-action) from 2 on"

# Not on the page: what every request passes, values, pure functions, logs and metrics, and what reads an answer of
# delivery.
NOT_LISTED = re.compile(
    r"""api/\w+\.py | (db|foundation|ops|settings|users)/.* | .*/metrics\.py
    | redis_store/(client|contract|keys)\.py
    | matching/(rules/.*|follow_up\.py|store/(records|stores|task_log)\.py)
    | delivery/actions/(context|requests|request_format|step_codec|steps)\.py
    | delivery/(actions|messages)/views\.py
    | delivery/messages/(error_texts|message_log|traits|values)\.py
    | delivery/words/rendering\.py""",
    re.VERBOSE,
)

# How many files each way passes. A commit that raises one of these numbers says why.
MOST_FILES = {"A press": 20, "An accept": 17, "A notification": 7, "An action": 9}


UNPREPARED = {("matching/store/students.py", "tasks_waiting_for")}
"""Runs only on a connection that has not prepared the statement which is sent with COMMIT."""


def section(way: str) -> str:
    return WAYS.split(f"\n### {way}\n")[1].split("\n### ")[0]


def listed(way: str, part: int = 0) -> list[Call]:
    """The functions of a way in order. A notification and an action have two lists; `part` counts them from 0."""
    before, follows, after = re.split(r"\n(?=1\. )", section(way))[1:][part].partition(ACTION_FOLLOWS)
    action = section("An action").partition("\n2. ")[2].partition("\n\n")[0] if follows else ""
    return LISTED.findall(before + action + after)


def shown(calls: Sequence[Call]) -> list[str]:
    """The files of a trace that the page has to list, in the order in which they were entered first."""
    files = dict.fromkeys(file for file, _ in calls)
    return [file for file in files if not NOT_LISTED.fullmatch(file)]


def statements(calls: Sequence[Call]) -> set[Call]:
    files = [file for file in shown(calls) if file.startswith("matching/store/")]
    return {(file, name) for file, name in calls if file in files and name[0] not in "_<"}


def check_order(calls: Sequence[Call], functions: Sequence[Call]) -> None:
    rest = iter(calls)
    for function in functions:
        assert function in rest, f"{function} does not run where the page says"


def check(way: str, calls: Sequence[Call], part: int = 0) -> None:
    functions = listed(way, part)
    assert len(set(functions)) == len(functions), "no function is on a way twice"
    check_order(calls, functions)
    assert set(shown(calls)) <= {file for file, _ in functions}, "the page lists every file"
    assert statements(calls) - UNPREPARED <= set(functions), "the page lists every statement"
    assert len(shown(calls)) <= MOST_FILES[way]


@pytest.fixture
def world(services: Services) -> World:
    return settle_world(services)


@pytest.fixture
def trace(services: Services, world: World) -> Callable[..., list[Call]]:
    """Sends a request, the second time with the trace on: the first time fills caches."""
    client = create_app(services).test_client()

    def trace(who: str, method: str, path: str, json: Any = None) -> list[Call]:
        headers = authorization(world, services, who)
        with traced() as calls:
            response = client.open(path, method=method, json=json, headers=headers)
        assert response.status_code < 300, response.get_data(as_text=True)
        return calls

    return trace


def test_a_press_goes_its_way(trace: Callable[..., list[Call]]) -> None:
    check("A press", trace("other_elder", "POST", "/tasks"))


def test_an_accept_goes_its_way(trace: Callable[..., list[Call]], world: World) -> None:
    check("An accept", trace("student", "PUT", f"/tasks/{world.task_id}/accept"))


# Only the ticker, because three threads that find the same task would mix their calls.
TICKER_ALONE = {"offer_ttl_s": 1, "matcher_listener": False, "matcher_reconciler": False}


@pytest.mark.parametrize("environ", [TICKER_ALONE])
def test_an_expiry_goes_its_way(services: Services) -> None:
    town = Neighbourhood(services)
    _, second, _ = town.students(10, 20, 30)
    task_id = town.press()
    matcher = build_matcher(services)
    with traced() as calls:
        matcher.start()
        eventually(lambda: town.asked(task_id) == second.id, "the second student is asked")
        matcher.stop()
    town.close()
    advance = calls[calls.index(("matching/due.py", "_settle_or_postpone")) :]
    check_order(calls, listed("An expiry"))
    assert set(shown(advance)) - BESIDE <= {file for way in ("An expiry", "A press") for file, _ in listed(way)}


BESIDE = {f"matching/{name}.py" for name in ("listener", "missed_deadlines", "reconciler", "redis_sync", "role")} | {
    "matching/store/sweep.py",
    "redis_store/events.py",
}
"""What a matcher does beside the way of an expiry."""


@contextmanager
def delivery(services: Services) -> Iterator[None]:
    stop = threading.Event()
    channels = build_channels(services.settings, services.db, services.clock)
    role = build_delivery(services.settings, services.db, services.clock, channels)
    thread = threading.Thread(target=role.run, args=(stop,))
    thread.start()
    yield
    stop.set()
    thread.join()
    channels.close()


def test_a_notification_goes_its_way(services: Services, trace: Callable[..., list[Call]]) -> None:
    body = {"notificationType": "EMAIL", "recipient": "ayse@ornek.org", "body": "Merhaba"}
    check("A notification", trace("coordinator", "POST", "/api/notifications", body))
    with traced() as calls, delivery(services):
        eventually(lambda: is_sent(services, "ayse@ornek.org"), "the e-mail is recorded as sent")
    check_order(calls, listed("A notification", 1))


def is_sent(services: Services, recipient: str) -> bool:
    with services.db.reading() as conn:
        statement = text("SELECT 1 FROM notifications WHERE recipient = :recipient AND status = 'SENT'")
        return conn.execute(statement, {"recipient": recipient}).one_or_none() is not None


def test_an_action_goes_its_way(services: Services, world: World, trace: Callable[..., list[Call]]) -> None:
    about = {"personId": world.ids["elder"], "variables": {"student": "Ahmet"}}
    body = {"planKey": "matching.started", "evaluationKey": "rule-114:2", **about}
    check("An action", trace("coordinator", "POST", "/api/v1/actions", body))
    with services.db.transaction() as conn:
        conn.execute(text("UPDATE actions SET due_at = clock_timestamp()"))
    with traced() as calls:
        assert Conductor(services.db, DeliveryRules.from_settings(services.settings)).run_once() > 0
    check_order(calls, listed("An action", 1))
