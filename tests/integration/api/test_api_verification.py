"""Verification of a channel by a code: wrong codes, limits, parallel requests, and secrecy of the code."""

import hashlib
import io
import re
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.messages.claims import claim
from app.delivery.messages.outcomes import Report, Verdict, record
from app.delivery.messages.values import NotificationStatus, NotificationType
from app.delivery.role import FOLLOWERS
from app.foundation.logs import configure_logs
from tests.support.world import World

CHANNELS = "/recipient-channels"
THREADS = 20


@pytest.fixture
def channel(ask: Any, world: World) -> Callable[..., str]:
    """Adds a channel and returns its path."""

    def channel(channel_type: str = "sms", target: str = "0555 010 20 30", **more: Any) -> str:
        body = {"profileId": world.entries["profileId"], "channelType": channel_type, "target": target} | more
        status, shown = ask("POST", CHANNELS, body)
        assert status == 201, shown
        return f"{CHANNELS}/{shown['id']}"

    return channel


def newest(db: Database) -> Any:
    with db.transaction() as conn:
        return conn.execute(
            text("SELECT * FROM notifications WHERE metadata ? 'verification' ORDER BY id DESC")
        ).first()


def start(ask: Any, db: Database, path: str) -> str:
    """Starts a verification and returns the code that the recipient reads."""
    status, started = ask("POST", f"{path}/verification")
    assert status == 202, started
    sent = newest(db)
    assert str(sent.id) == started["notificationId"]
    found = re.search(r"\b\d{6}\b", sent.body)
    assert found
    return found[0]


def wrong(code: str) -> str:
    return f"{(int(code) + 1) % 1_000_000:06}"


def submit_code(ask: Any, path: str, code: str) -> tuple[int, Any]:
    status, said = ask("PUT", f"{path}/verification", {"code": code})
    return status, said["verifyStatus"] if status == 200 else said["code"]


def let_time_pass(db: Database, seconds: int) -> None:
    with db.transaction() as conn:
        conn.execute(
            text("UPDATE channel_verifications SET expires_at = expires_at - make_interval(secs => :s)"), {"s": seconds}
        )
        conn.execute(
            text("UPDATE notifications SET created_at = created_at - make_interval(secs => :s)"), {"s": seconds}
        )


@pytest.mark.parametrize(
    ("channel_type", "target"),
    [("sms", "+905550102030"), ("whatsapp", "+905550102030"), ("email", "ayse@ornek.org"), ("push", "a-token")],
)
def test_code_is_sent_through_the_channel_that_it_verifies(
    ask: Any, db: Database, channel: Callable[..., str], channel_type: str, target: str
):
    path = channel(channel_type, target, targetMeta={"addressKind": "FID"} if channel_type == "push" else {})
    code = start(ask, db, path)
    sent = newest(db)
    assert (sent.notification_type, sent.recipient) == (channel_type.upper(), target)
    assert sent.body == f"Yanında doğrulama kodunuz: {code}. 10 dakika geçerlidir."
    assert sent.metadata.get("addressKind") == ("FID" if channel_type == "push" else None)
    assert submit_code(ask, path, code) == (200, "verified")
    assert submit_code(ask, path, code) == (200, "verified")
    status, problem = ask("POST", f"{path}/verification")
    assert (status, problem["code"]) == (409, "channel_already_verified")


def test_code_is_sent_to_an_unverified_channel(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    start(ask, db, path)
    with db.transaction() as conn:
        [taken] = claim(conn, NotificationType.SMS, 10, 30, followers=FOLLOWERS).taken
    assert taken.recipient_channel is not None
    assert f"{CHANNELS}/{taken.recipient_channel.channel_id}" == path
    assert taken.notification.expires_at is not None
    assert not taken.is_retired


def test_code_message_is_in_the_language_of_the_profile(
    ask: Any, db: Database, channel: Callable[..., str], world: World
):
    ask("PATCH", f"/recipient-profiles/{world.entries['profileId']}", {"locale": "en"})
    code = start(ask, db, channel())
    assert newest(db).body == f"Your Yanında verification code: {code}. It is good for 10 minutes."


@pytest.mark.parametrize("body", ["{{ missing }}", "Merhaba!"])
def test_template_without_the_code_is_replaced_by_the_shipped_one(
    ask: Any, db: Database, channel: Callable[..., str], body: str
):
    with db.transaction() as conn:
        values = {"body": body}
        conn.execute(
            text("UPDATE message_templates SET body = :body WHERE key = 'directory.verification_code'"), values
        )
    path = channel()
    assert submit_code(ask, path, start(ask, db, path)) == (200, "verified")


def test_five_wrong_codes_end_the_verification(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    code = start(ask, db, path)
    for left in (4, 3, 2, 1):
        status, problem = ask("PUT", f"{path}/verification", {"code": wrong(code)})
        assert (status, problem["code"], problem["triesLeft"]) == (409, "wrong_verification_code", left)
    assert submit_code(ask, path, wrong(code)) == (409, "verification_tries_used_up")
    assert submit_code(ask, path, code) == (409, "verification_tries_used_up")
    assert ask("GET", path)[1]["verifyStatus"] == "failed"
    let_time_pass(db, 61)
    assert submit_code(ask, path, start(ask, db, path)) == (200, "verified")


def test_right_code_works_after_a_wrong_one(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    code = start(ask, db, path)
    assert submit_code(ask, path, wrong(code)) == (409, "wrong_verification_code")
    assert submit_code(ask, path, code) == (200, "verified")


def test_code_is_valid_for_ten_minutes(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    code = start(ask, db, path)
    let_time_pass(db, 601)
    assert submit_code(ask, path, code) == (409, "verification_expired")


def test_newer_code_replaces_the_older_one(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    old = start(ask, db, path)
    let_time_pass(db, 61)
    new = start(ask, db, path)
    if old != new:
        assert submit_code(ask, path, old) == (409, "wrong_verification_code")
    assert submit_code(ask, path, new) == (200, "verified")


def test_code_for_an_earlier_target_is_refused(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    code = start(ask, db, path)
    ask("PATCH", path, {"target": "0555 010 20 31"})
    assert submit_code(ask, path, code) == (409, "verification_not_running")
    assert ask("GET", path)[1]["verifyStatus"] == "pending"


def test_code_is_sent_once_a_minute(ask: Any, call: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    start(ask, db, path)
    response = call("admin", "POST", f"/api/v1{path}/verification")
    assert (response.status_code, response.get_json(force=True)["code"]) == (429, "verification_too_soon")
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    let_time_pass(db, 60)
    start(ask, db, path)


def test_limit_of_codes_counts_for_an_address_in_all_channels(ask: Any, db: Database, channel: Callable[..., str]):
    """Each start allows five tries. Without this limit, a code could be guessed in hours, and a phone be flooded."""
    path = channel()
    start(ask, db, path)
    ask("PATCH", path, {"target": "0555 010 20 31"})
    ask("PATCH", path, {"target": "0555 010 20 30"})
    again = channel()
    for one in (path, again):
        assert ask("POST", f"{one}/verification")[1]["code"] == "verification_too_soon"
    ask("DELETE", path)
    assert ask("POST", f"{channel()}/verification")[1]["code"] == "verification_too_soon"
    start(ask, db, channel("whatsapp"))
    let_time_pass(db, 61)
    start(ask, db, again)


def test_ten_channels_of_one_address_started_at_once_send_one_code(ask: Any, db: Database, channel: Callable[..., str]):
    paths = [channel() for _ in range(10)]
    with ThreadPoolExecutor(10) as pool:
        statuses = Counter(pool.map(lambda path: ask("POST", f"{path}/verification")[0], paths))
    assert statuses == {202: 1, 429: 9}


def test_channel_that_cannot_be_verified_is_refused(ask: Any, channel: Callable[..., str], world: World):
    path = channel()
    assert submit_code(ask, path, "123456") == (409, "verification_not_running")
    ask("PATCH", path, {"enabled": False})
    assert ask("POST", f"{path}/verification")[1]["code"] == "channel_disabled"
    assert ask("POST", f"{channel('audit', 'defter')}/verification")[1]["code"] == "channel_already_verified"
    ask("DELETE", path)
    assert ask("POST", f"{path}/verification")[0] == ask("PUT", f"{path}/verification", {"code": "123456"})[0] == 404
    for code in ("12345", "1234567", "12345a", 123456, "１２３４５６", ""):
        status, problem = ask("PUT", f"{CHANNELS}/{world.entries['channelId']}/verification", {"code": code})
        assert (status, problem["errors"][0]["field"]) == (400, "code")


def test_webhook_gets_a_challenge_and_no_code(ask: Any, db: Database, world: World):
    path = f"{CHANNELS}/{world.entries['channelId']}"
    status, started = ask("POST", f"{path}/verification")
    assert status == 202
    sent = newest(db)
    assert str(sent.id) == started["notificationId"]
    assert (sent.notification_type, sent.subject, sent.body) == ("WEBHOOK", "", "")
    assert len(sent.metadata["challenge"]) >= 40
    assert sent.channel_id == world.entries["channelId"]
    assert submit_code(ask, path, "123456") == (409, "verification_needs_no_code")


def test_webhook_that_answered_its_challenge_is_verified(ask: Any, db: Database, world: World):
    path = f"{CHANNELS}/{world.entries['channelId']}"
    ask("POST", f"{path}/verification")
    with db.transaction() as conn:
        [taken] = claim(conn, NotificationType.WEBHOOK, 10, 30, followers=FOLLOWERS).taken
        record(conn, [Report(taken, Verdict(NotificationStatus.SENT))], FOLLOWERS)
    assert ask("GET", path)[1]["verifyStatus"] == "verified"


def test_codes_are_hidden_from_coordinators(
    ask: Any, call: Any, db: Database, channel: Callable[..., str], world: World
):
    code = start(ask, db, channel())
    ask("POST", f"{CHANNELS}/{world.entries['channelId']}/verification")
    challenge = newest(db).metadata["challenge"]
    listed = call("admin", "GET", "/api/notifications")
    ids = [item["id"] for item in listed.json["items"] if "verification" in item["metadata"]]
    assert len(ids) == 2
    shown = [listed.text, *(call("admin", "GET", f"/api/notifications/{id_}").text for id_ in ids)]
    for secret in (code, challenge):
        assert not any(secret in one for one in shown)


def test_code_is_kept_as_a_hash_once_it_was_sent(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    code = start(ask, db, path)
    with db.transaction() as conn:
        [taken] = claim(conn, NotificationType.SMS, 10, 30, followers=FOLLOWERS).taken
        assert code in taken.notification.body
        record(conn, [Report(taken, Verdict(NotificationStatus.SENT))], FOLLOWERS)
        rows = (
            "SELECT to_jsonb(n)::text FROM notifications n UNION SELECT to_jsonb(v)::text FROM channel_verifications v"
        )
        kept = conn.execute(text(rows)).scalars().all()
        digest = conn.execute(text("SELECT digest FROM channel_verifications")).scalar_one()
    assert not any(code in row for row in kept if str(taken.id) in row)
    assert digest != hashlib.sha256(f"{taken.id}:{code}".encode()).digest(), "a million of these take a second"
    assert submit_code(ask, path, code) == (200, "verified")


def test_codes_are_not_logged(ask: Any, db: Database, channel: Callable[..., str], monkeypatch: pytest.MonkeyPatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure_logs("DEBUG", as_json=True)
    path = channel()
    code = start(ask, db, path)
    submit_code(ask, path, wrong(code))
    submit_code(ask, path, code)
    assert written.getvalue().count('"event": "request"') == 4
    for secret in (code, wrong(code), "5550102030"):
        assert not re.search(rf"(?<![0-9.]){secret}(?!\d)", written.getvalue())


def at_once(what: Callable[[int], Any]) -> Counter[Any]:
    with ThreadPoolExecutor(THREADS) as pool:
        return Counter(pool.map(what, range(THREADS)))


def test_twenty_parallel_wrong_codes_count_as_five_tries(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    code = start(ask, db, path)
    said = at_once(lambda _: submit_code(ask, path, wrong(code)))
    assert said == {(409, "wrong_verification_code"): 4, (409, "verification_tries_used_up"): 16}
    assert submit_code(ask, path, code) == (409, "verification_tries_used_up")


def test_twenty_parallel_right_codes_verify_once(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    code = start(ask, db, path)
    assert at_once(lambda _: submit_code(ask, path, code)) == {(200, "verified"): THREADS}


def test_parallel_guesses_get_no_more_than_five_tries(ask: Any, db: Database, channel: Callable[..., str]):
    """The right code races wrong ones: it is either among the first five, or the channel stays unverified."""
    path = channel()
    code = start(ask, db, path)
    said = at_once(lambda number: submit_code(ask, path, code if number == 10 else wrong(code)))
    is_verified = ask("GET", path)[1]["verifyStatus"] == "verified"
    assert said[409, "wrong_verification_code"] <= 4
    assert is_verified == (said[200, "verified"] > 0)


def test_twenty_parallel_starts_send_one_code(ask: Any, db: Database, channel: Callable[..., str]):
    path = channel()
    assert at_once(lambda _: ask("POST", f"{path}/verification")[0]) == {202: 1, 429: THREADS - 1}
    with db.transaction() as conn:
        sent = conn.execute(text("SELECT count(*) FROM notifications WHERE metadata ? 'verification'")).scalar_one()
    assert sent == 1
