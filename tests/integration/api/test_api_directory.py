"""Profiles and channels over HTTP, on real stores."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from app.db.database import Database
from tests.support.world import World

PROFILES = "/recipient-profiles"
CHANNELS = "/recipient-channels"


def add_channel(ask: Any, world: World, channel_type: str = "sms", target: str = "0555 010 20 30", **more: Any) -> Any:
    body = {"profileId": world.entries["profileId"], "channelType": channel_type, "target": target} | more
    status, shown = ask("POST", CHANNELS, body)
    assert status == 201, shown
    return shown


def somebody_waits_for_a_lock(db: Database) -> bool:
    """Waits until another transaction waits for a row that the test has locked. False after four seconds."""
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    for _ in range(200):
        with db.transaction() as conn:
            if conn.execute(waiting).scalar_one():
                return True
        time.sleep(0.02)
    return False


def refused(answer: tuple[int, Any]) -> list[str]:
    status, problem = answer
    assert status == 400, problem
    return [entry["field"] for entry in problem["errors"]]


def test_profile_is_created_shown_changed_and_retired(ask: Any, world: World):
    body = {"name": "Nöbet", "deviceId": "400000011D081B70", "userId": world.ids["student"], "locale": "en"}
    status, profile = ask("POST", PROFILES, body | {"status": False, "priority": 3})
    assert status == 201
    assert profile.items() >= (body | {"status": False, "priority": 3, "key": None, "retiredAt": None}).items()
    path = f"{PROFILES}/{profile['id']}"
    assert ask("GET", path) == (200, profile)
    status, changed = ask("PATCH", path, {"deviceId": None, "priority": 0})
    assert status == 200
    assert changed.pop("updatedAt") > profile["updatedAt"]
    del profile["updatedAt"]
    assert changed == profile | {"deviceId": None, "priority": 0}
    assert ask("DELETE", path) == (204, None)
    for method, json in (("DELETE", None), ("PATCH", {"priority": 1})):
        status, problem = ask(method, path, json)
        assert (status, problem["code"]) == (404, "not_found")
    assert profile["id"] not in [one["id"] for one in ask("GET", PROFILES)[1]["items"]]
    retired = ask("GET", f"{PROFILES}?includeRetired=true")[1]["items"][0]
    assert (retired["id"], retired["retiredAt"] is None) == (profile["id"], False)
    assert ask("GET", path) == (200, retired)


def test_profile_with_only_a_name_has_default_values(ask: Any, world: World):
    shown = ask("POST", PROFILES, {"name": "Sera"})[1]
    usual = {"deviceId": None, "userId": None, "locale": "tr", "status": True, "priority": 0, "key": None}
    assert shown.items() >= usual.items()
    assert ask("PATCH", f"{PROFILES}/{shown['id']}", {}) == (200, shown)


def test_profiles_are_filtered_by_device_user_and_status(ask: Any, world: World):
    student = world.ids["student"]
    one = ask("POST", PROFILES, {"name": "A", "deviceId": "device-1"})[1]["id"]
    two = ask("POST", PROFILES, {"name": "B", "userId": student, "status": False})[1]["id"]

    def found(query: str) -> list[int]:
        return [item["id"] for item in ask("GET", f"{PROFILES}?{query}")[1]["items"]]

    assert found("deviceId=device-1") == [one]
    assert found("key=coordinator.on_call") == [1]
    assert found(f"userId={student}") == [two]
    assert found("status=false") == [two, 2, 1], "the shipped ones are switched off"
    assert one in found("status=true")


def test_profiles_are_paginated_newest_first(ask: Any, world: World):
    made = [ask("POST", PROFILES, {"name": f"P{number}"})[1]["id"] for number in range(5)]
    seen: list[int] = []
    cursor = ""
    for _ in range(10):
        page = ask("GET", f"{PROFILES}?limit=2{cursor}")[1]
        seen += [item["id"] for item in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert seen == [*reversed(made), world.entries["profileId"], 2, 1]
    assert refused(ask("GET", f"{PROFILES}?cursor=x")) == ["cursor"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a" * 101),
        ("name", None),
        ("deviceId", "a" * 22),
        ("deviceId", "bir cihaz"),
        ("userId", 999_999),
        ("userId", "7"),
        ("locale", "de"),
        ("status", 1),
        ("priority", -1),
        ("priority", 1.5),
        ("priority", 10**10),
        ("key", "coordinator.on_call"),
        ("id", 5),
    ],
)
def test_refusal_of_a_profile_names_the_field(ask: Any, world: World, field: str, value: Any):
    assert refused(ask("POST", PROFILES, {"name": "Nöbet", field: value})) == [field]
    assert refused(ask("PATCH", f"{PROFILES}/{world.entries['profileId']}", {field: value})) == [field]


@pytest.mark.parametrize(
    ("channel_type", "written", "stored"),
    [
        ("sms", "0555 010 20 30", "+905550102030"),
        ("whatsapp", "+90 (555) 010-20-30", "+905550102030"),
        ("email", "ayse@ÖRNEK.org", "ayse@xn--rnek-4qa.org"),
        ("webhook", "https://Ornek.ORG", "https://ornek.org/"),
        ("push", "fcm-token:abc_1", "fcm-token:abc_1"),
        ("audit", "nöbet defteri", "nöbet defteri"),
    ],
)
def test_target_is_stored_in_its_canonical_form(ask: Any, world: World, channel_type: str, written: str, stored: str):
    shown = add_channel(ask, world, channel_type, written, targetMeta={"platform": "ANDROID"})
    assert shown["target"] == stored
    assert shown["targetMeta"] == {"platform": "ANDROID"}
    assert shown["enabled"] is True
    assert shown["verifyStatus"] == ("verified" if channel_type == "audit" else "pending")


def test_user_is_a_valid_target(ask: Any, world: World):
    student = world.ids["student"]
    shown = add_channel(ask, world, "in_app", f"{student}")
    assert (shown["target"], shown["verifyStatus"]) == (f"user:{student}", "verified")
    assert add_channel(ask, world, "push", f"user:{student}")["verifyStatus"] == "pending"
    body = {"profileId": world.entries["profileId"], "channelType": "in_app", "target": "user:999999"}
    assert refused(ask("POST", CHANNELS, body)) == ["target"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("profileId", 999_999),
        ("profileId", None),
        ("channelType", "pigeon"),
        ("channelType", "SMS"),
        ("channelType", "device_downlink"),
        ("target", ""),
        ("target", "12"),
        ("target", "+90555\r\n0102030"),
        ("target", "0" * 256),
        ("targetMeta", []),
        ("targetMeta", {"a": "x" * 9_000}),
        ("targetMeta", {"a": "\x00"}),
        ("targetMeta", {"a": 10**400}),
        ("enabled", "yes"),
        ("verifyStatus", "verified"),
        ("secrets", ["whsec_x"]),
    ],
)
def test_refusal_of_a_channel_names_the_field(ask: Any, world: World, field: str, value: Any):
    body = {"profileId": world.entries["profileId"], "channelType": "sms", "target": "0555 010 20 30"}
    assert refused(ask("POST", CHANNELS, body | {field: value})) == [field]


def test_deeply_nested_target_meta_is_refused(ask: Any, world: World):
    meta: dict[str, Any] = {}
    for _ in range(20):
        meta = {"a": meta}
    body = {"profileId": world.entries["profileId"], "channelType": "sms", "target": "0555 010 20 30"}
    assert refused(ask("POST", CHANNELS, body | {"targetMeta": meta})) == ["targetMeta"]


@pytest.mark.parametrize(
    ("channel_type", "target"),
    [
        ("email", "zeynep"),
        ("webhook", "ftp://ornek.org"),
        ("whatsapp", "zeynep"),
        ("in_app", "zeynep"),
        ("push", "a b"),
    ],
)
def test_each_channel_type_accepts_only_its_kind_of_target(ask: Any, world: World, channel_type: str, target: str):
    body = {"profileId": world.entries["profileId"], "channelType": channel_type, "target": target}
    status, problem = ask("POST", CHANNELS, body)
    assert refused((status, problem)) == ["target"]
    assert target not in problem["errors"][0]["message"]


def test_changed_target_must_be_verified_again(ask: Any, world: World, db: Database):
    path = f"{CHANNELS}/{add_channel(ask, world)['id']}"
    with db.transaction() as conn:
        conn.execute(text("UPDATE recipient_channels SET verify_status = 'verified'"))
    same = {"target": "+90 555 010 20 30", "enabled": False, "targetMeta": {"a": 1}}
    shown = ask("PATCH", path, same)[1]
    assert (shown["verifyStatus"], shown["enabled"], shown["targetMeta"]) == ("verified", False, {"a": 1})
    shown = ask("PATCH", path, {"target": "0555 010 20 31"})[1]
    assert (shown["verifyStatus"], shown["target"]) == ("pending", "+905550102031")
    assert refused(ask("PATCH", path, {"target": "nobody"})) == ["target"]
    assert refused(ask("PATCH", path, {"channelType": "email"})) == ["channelType"]
    assert refused(ask("PATCH", path, {"verifyStatus": "verified"})) == ["verifyStatus"]


def test_channels_are_filtered_by_profile_and_type(ask: Any, world: World):
    sms = add_channel(ask, world)["id"]
    profile = world.entries["profileId"]
    assert [one["id"] for one in ask("GET", f"{CHANNELS}?channelType=sms")[1]["items"]] == [sms]
    everything = ask("GET", f"{CHANNELS}?profileId={profile}")[1]["items"]
    assert [one["id"] for one in everything] == [sms, world.entries["channelId"]]
    assert ask("GET", f"{CHANNELS}?profileId=1")[1]["items"] == []


def test_retired_profile_retires_its_channels_and_keeps_its_routes(ask: Any, world: World):
    known = world.entries
    assert ask("DELETE", f"{PROFILES}/{known['profileId']}")[0] == 204
    channel, route = f"{CHANNELS}/{known['channelId']}", f"/action-routes/{known['routeId']}"
    assert ask("GET", channel)[1]["retiredAt"] is not None
    assert ask("PATCH", channel, {"enabled": False})[0] == ask("DELETE", channel)[0] == 404
    assert ask("GET", route)[1]["retiredAt"] is None
    assert ask("PATCH", route, {"recipientProfileId": 1})[0] == 200
    assert ask("DELETE", route)[0] == 204
    body = {"profileId": known["profileId"], "channelType": "sms", "target": "0555 010 20 30"}
    assert refused(ask("POST", CHANNELS, body)) == ["profileId"]


def test_secret_is_shown_once_and_signs_until_it_is_removed(ask: Any, world: World, db: Database):
    made = add_channel(ask, world, "webhook", "https://ornek.org/kanca")
    path = f"{CHANNELS}/{made['id']}"
    first = made.pop("secret")
    assert first.startswith("whsec_")
    rotated = [ask("POST", f"{path}/secret")[1]["secret"] for _ in range(4)]
    assert len({first, *rotated}) == 5

    def stored() -> list[str]:
        with db.transaction() as conn:
            found = conn.execute(text("SELECT secrets FROM recipient_channels WHERE id = :id"), {"id": made["id"]})
            return found.scalar_one()

    assert stored() == rotated[:0:-1]
    assert ask("DELETE", f"{path}/secret/previous") == (204, None)
    assert ask("DELETE", f"{path}/secret/previous") == (204, None)
    assert stored() == rotated[-1:]
    seen = [ask("GET", path), ask("GET", CHANNELS), ask("PATCH", path, {"enabled": False})]
    assert "whsec_" not in str(seen)
    assert "secret" not in str(seen)


def test_headers_are_stored_but_not_shown(ask: Any, world: World, db: Database):
    meta = {"headers": {"Authorization": "Bearer s3cret", "X-Place": "sera"}, "note": "kanca"}
    made = add_channel(ask, world, "webhook", "https://ornek.org/kanca", targetMeta=meta)
    path = f"{CHANNELS}/{made['id']}"
    shown = ask("GET", path)[1]["targetMeta"]
    assert shown == made["targetMeta"] == {"headers": {"Authorization": "••••••", "X-Place": "••••••"}, "note": "kanca"}

    def stored() -> Any:
        with db.transaction() as conn:
            found = conn.execute(text("SELECT target_meta FROM recipient_channels WHERE id = :id"), {"id": made["id"]})
            return found.scalar_one()

    assert stored() == meta
    ask("PATCH", path, {"targetMeta": shown | {"note": "yeni"}})
    assert stored() == meta | {"note": "yeni"}
    ask("PATCH", path, {"targetMeta": {"headers": {"Authorization": "Bearer 0ther"}}})
    assert stored() == {"headers": {"Authorization": "Bearer 0ther"}}


def test_changed_address_drops_the_headers(ask: Any, world: World, db: Database):
    meta = {"headers": {"Authorization": "Bearer s3cret"}, "note": "kanca"}
    made = add_channel(ask, world, "webhook", "https://ornek.org/kanca", targetMeta=meta)
    path, other = f"{CHANNELS}/{made['id']}", {"target": "https://baska.org/kanca"}
    assert refused(ask("PATCH", path, other)) == ["targetMeta"]
    assert refused(ask("PATCH", path, other | {"targetMeta": made["targetMeta"]})) == ["targetMeta"]
    assert ask("PATCH", path, {"target": "https://ORNEK.org/kanca"})[0] == 200
    assert ask("PATCH", path, other | {"targetMeta": {"headers": {"Authorization": "Bearer 0ther"}}})[0] == 200
    assert ask("PATCH", path, {"target": "https://ornek.org/"} | {"targetMeta": {"note": "kanca"}})[0] == 200
    assert ask("PATCH", path, other)[1]["targetMeta"] == {"note": "kanca"}


def test_parallel_change_of_address_drops_the_headers(ask: Any, world: World, db: Database):
    """One client writes back the channel that it read while another client changes its address."""
    meta = {"headers": {"Authorization": "Bearer s3cret"}}
    made = add_channel(ask, world, "webhook", "https://ornek.org/kanca", targetMeta=meta)
    path = f"{CHANNELS}/{made['id']}"
    with ThreadPoolExecutor(1) as pool, db.transaction() as conn:
        conn.execute(
            text("UPDATE recipient_channels SET target = 'https://baska.org/', target_meta = '{}' WHERE id = :id"),
            {"id": made["id"]},
        )
        later = pool.submit(ask, "PATCH", path, {"targetMeta": made["targetMeta"]})
        assert somebody_waits_for_a_lock(db)
        conn.commit()
        assert later.result()[0] == 200
    with db.transaction() as conn:
        stored = conn.execute(
            text("SELECT target_meta::text FROM recipient_channels WHERE id = :id"), {"id": made["id"]}
        )
        assert "s3cret" not in stored.scalar_one()


def test_only_webhooks_have_secrets(ask: Any, world: World):
    made = add_channel(ask, world)
    assert "secret" not in made
    for method, path in (("POST", "secret"), ("DELETE", "secret/previous")):
        status, problem = ask(method, f"{CHANNELS}/{made['id']}/{path}")
        assert (status, problem["code"]) == (409, "not_a_webhook")
        assert ask(method, f"{CHANNELS}/999999/{path}")[0] == 404
