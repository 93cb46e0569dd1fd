"""Limits of what callers may send, and the limit of what may wait: exact for all processes together, and quiet."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.bootstrap.api import create_app
from tests.support.world import World, authorization, settle_world

NOTIFICATIONS, ACTIONS, CHANNELS = "/api/notifications", "/api/v1/actions", "/api/v1/recipient-channels"
MAIL = {"notificationType": "EMAIL", "recipient": "ayse@ornek.org", "body": "Hoş geldiniz"}
Post = Callable[..., Any]


@pytest.fixture
def environ() -> dict[str, Any]:
    return {"sends_per_minute": 3, "sends_per_day": 5, "sends_per_recipient": 4}


@pytest.fixture
def world(services: Services) -> World:
    return settle_world(services)


@pytest.fixture
def post(services: Services, world: World) -> Post:
    """Each call may go to another one of two processes."""
    apps = [create_app(services), create_app(services)]

    def post(path: str, body: Any, *, who: str = "coordinator", key: str | None = None, process: int = 0) -> Any:
        headers = authorization(world, services, who) | ({"Idempotency-Key": key} if key else {})
        return apps[process].test_client().post(path, json=body, headers=headers)

    return post


def run(services: Services, statement: str) -> Any:
    with services.db.transaction() as conn:
        return conn.execute(text(statement))


def to(number: int, **changes: Any) -> dict[str, Any]:
    return MAIL | {"recipient": f"ayse{number}@ornek.org"} | changes


def codes(answers: list[Any]) -> list[int]:
    return [answer.status_code for answer in answers]


def test_caller_is_limited_in_a_minute_and_others_are_not(post: Post) -> None:
    assert codes([post(NOTIFICATIONS, to(n)) for n in range(4)]) == [202, 202, 202, 429]
    refused = post(NOTIFICATIONS, to(4))
    problem = refused.get_json(force=True)
    assert (problem["code"], problem["detail"]) == ("sending_limit", "Too many messages for now.")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert post(NOTIFICATIONS, to(4), who="admin").status_code == 202


def test_refused_message_leaves_nothing_and_a_repeat_is_answered(post: Post, services: Services) -> None:
    first = post(NOTIFICATIONS, to(0), key="k")
    assert codes([post(NOTIFICATIONS, to(n), key=f"k{n}") for n in range(1, 4)]) == [202, 202, 429]
    assert post(NOTIFICATIONS, to(0), key="k").json == first.json
    assert run(services, "SELECT count(*) FROM notifications WHERE recipient LIKE 'ayse%'").scalar_one() == 3
    assert run(services, "SELECT count(*) FROM notification_keys WHERE key = 'k3'").scalar_one() == 0


def test_day_and_minute_have_windows_of_their_own(post: Post, services: Services) -> None:
    assert codes([post(NOTIFICATIONS, to(n)) for n in range(4)]) == [202, 202, 202, 429]
    run(services, "UPDATE sending_counts SET began_at = began_at - interval '61 s'")
    assert codes([post(NOTIFICATIONS, to(n)) for n in range(4, 7)]) == [202, 202, 429]
    assert int(post(NOTIFICATIONS, to(7)).headers["Retry-After"]) > 3600
    run(services, "UPDATE sending_counts SET began_at = began_at - interval '1 day'")
    assert post(NOTIFICATIONS, to(7)).status_code == 202


def test_recipient_is_protected_from_all_callers_together(post: Post) -> None:
    answers = [post(NOTIFICATIONS, MAIL, who=who) for who in ("coordinator", "admin") * 3]
    assert codes(answers) == [202, 202, 202, 202, 429, 429]
    assert answers[-1].get_json(force=True)["detail"] == "Too many messages for now."
    entry = {"notificationType": "AUDIT", "recipient": "ayse@ornek.org", "body": "b"}
    assert post(NOTIFICATIONS, entry).status_code == 202, "other types are counted apart"


def test_other_letters_are_the_same_mailbox(post: Post) -> None:
    """Hardly any mail server tells them apart, and an address of ten letters has a thousand spellings."""
    spellings = ("ayse", "Ayse", "aYse", "AYSE", "aySE")
    answers = [
        post(NOTIFICATIONS, MAIL | {"recipient": f"{one}@ornek.org"}, who=who)
        for one, who in zip(spellings, ("coordinator", "admin") * 3, strict=False)
    ]
    assert codes(answers) == [202, 202, 202, 202, 429]


def test_table_of_counts_holds_no_addresses(post: Post, services: Services) -> None:
    post(NOTIFICATIONS, MAIL)
    assert "ayse" not in str(run(services, "SELECT * FROM sending_counts").all())


def test_what_matching_sends_is_not_counted(post: Post, services: Services) -> None:
    assert post("/tasks", {}, who="other_elder").status_code in (200, 201)
    assert run(services, "SELECT count(*) FROM sending_counts").scalar_one() == 0


def at_once(post: Post, calls: int, body: Callable[[int], Any]) -> Counter[int]:
    barrier = Barrier(calls)

    def one(number: int) -> int:
        barrier.wait()
        return post(NOTIFICATIONS, body(number), key=f"key-{number}", process=number % 2).status_code

    with ThreadPoolExecutor(calls) as pool:
        return Counter(pool.map(one, range(calls)))


def test_thousand_keys_in_two_processes_are_one_caller(post: Post) -> None:
    assert at_once(post, 24, to) == {202: 3, 429: 21}


class TestBacklogOfTwoProcesses:
    @pytest.fixture
    def environ(self) -> dict[str, Any]:
        return {"notification_backlog_limit": 9}

    def test_limit_holds_for_both_together(self, post: Post, services: Services) -> None:
        live = "SELECT count(*) FROM notifications WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING')"
        waiting = run(services, live).scalar_one()
        assert waiting < 9
        assert at_once(post, 24, to) == {202: 9 - waiting, 503: 15 + waiting}
        assert run(services, live).scalar_one() == 9


class TestActions:
    @pytest.fixture
    def environ(self) -> dict[str, Any]:
        return {"sends_per_minute": 3, "sends_per_recipient": 2}

    def test_actions_of_a_caller_about_one_person_are_limited(self, post: Post, world: World) -> None:
        def ask(key: str, who: str = "coordinator", **changes: Any) -> Any:
            return post(ACTIONS, {"planKey": "matching.completed", "evaluationKey": key} | changes, who=who)

        elder, other = ({"personId": world.ids[name]} for name in ("elder", "other_elder"))
        assert codes([ask(key, **elder) for key in "abc"]) == [202, 202, 429]
        assert ask("a", **elder).status_code == 200, "a repeat is answered"
        assert ask("a", "admin", **elder).status_code == 429, "the same person from another caller"
        assert codes([ask(key, **other) for key in "de"]) == [202, 429]
        assert ask("e").get_json(force=True)["code"] == "sending_limit"


class TestCodes:
    @pytest.fixture
    def environ(self) -> dict[str, Any]:
        return {"sends_per_minute": 2}

    def test_codes_that_verify_channels_are_limited(self, post: Post, world: World) -> None:
        def verify(number: int) -> Any:
            target = {"channelType": "sms", "target": f"0555 010 20 3{number}", "profileId": world.entries["profileId"]}
            channel = post(CHANNELS, target, who="admin").json["id"]
            return post(f"{CHANNELS}/{channel}/verification", {}, who="admin")

        assert codes([verify(n) for n in range(3)]) == [202, 202, 429]


def test_sms_to_another_country_are_refused(post: Post, world: World) -> None:
    sms = {"notificationType": "SMS", "recipient": "+49 151 12345678", "body": "b"}
    channel = {"profileId": world.entries["profileId"], "channelType": "sms", "target": "+4915112345678"}
    for path, body, field in ((NOTIFICATIONS, sms, "recipient"), (CHANNELS, channel, "target")):
        refused = post(path, body, who="admin")
        assert refused.status_code == 400
        [error] = refused.get_json(force=True)["errors"]
        assert (error["field"], error["message"]) == (
            field,
            "is in a country that messages of this type are not sent to",
        )
