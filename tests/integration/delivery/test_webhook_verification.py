"""A webhook channel is verified by its answer, in the transaction that records the answer."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, event, text

from app.db.database import Database
from app.delivery.channels.webhook import WebhookChannel
from app.delivery.directory.service import PROFILES
from app.delivery.messages.claims import claim
from app.delivery.messages.outcomes import Report, Try, Verdict, record
from app.delivery.messages.retry import SendResult
from app.delivery.messages.submit import NewSubmission, submit
from app.delivery.messages.values import Follower, NotificationChange, NotificationStatus, NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.delivery.sending.sender import Sender
from app.foundation.clock import DatabaseClock
from app.settings import signing_secrets
from tests.support.actions import SOMEBODY_WAITS, ActionHarness
from tests.support.breakers import new_gate
from tests.support.delivery import make_due, row
from tests.support.matching import eventually
from tests.support.provider_server import Answer, ProviderServer

SECRET = signing_secrets.create()
ECHO = Answer(200, {"challenge": "c-1"})


class Directory:
    """Adds a webhook channel and starts its verification, as the API does for a coordinator."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, target: str, **changes: Any) -> int:
        with self._db.transaction() as conn:
            profile = conn.execute(text("INSERT INTO recipient_profiles (name) VALUES ('Ops OnCall') RETURNING id"))
            return conn.execute(
                text(
                    "INSERT INTO recipient_channels (profile_id, channel_type, target, secrets)"
                    " VALUES (:profile_id, 'webhook', :target, :secrets) RETURNING id"
                ),
                {"profile_id": profile.scalar_one(), "target": target, "secrets": [SECRET]} | changes,
            ).scalar_one()

    def challenge(self, channel_id: int, target: str, *, lives_s: float = 600, metadata: Any = None) -> UUID:
        new = NewSubmission(
            NotificationType.WEBHOOK,
            target,
            "",
            metadata={"challenge": "c-1"} if metadata is None else metadata,
            channel_id=channel_id,
        )
        with self._db.transaction() as conn:
            id_ = submit(conn, new).id
            conn.execute(
                text(
                    "INSERT INTO channel_verifications (channel_id, notification_id, digest, tries_left, expires_at)"
                    " VALUES (:channel_id, :id, '', 1, clock_timestamp() + :lives)"
                    " ON CONFLICT (channel_id) DO UPDATE SET notification_id = excluded.notification_id"
                ),
                {"channel_id": channel_id, "id": id_, "lives": timedelta(seconds=lives_s)},
            )
        return id_

    def state(self, channel_id: int) -> tuple[str, bool, int]:
        """The state of its verification, whether it is enabled, and the number of running verifications."""
        with self._db.transaction() as conn:
            found = conn.execute(
                text(
                    "SELECT verify_status, enabled, (SELECT count(*) FROM channel_verifications v"
                    " WHERE v.channel_id = c.id) AS running FROM recipient_channels c WHERE id = :id"
                ),
                {"id": channel_id},
            ).one()
        return found.verify_status, found.enabled, found.running

    def change(self, channel_id: int, assignment: str) -> None:
        with self._db.transaction() as conn:
            conn.execute(text(f"UPDATE recipient_channels SET {assignment} WHERE id = :id"), {"id": channel_id})


@pytest.fixture
def directory(db: Database) -> Directory:
    return Directory(db)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(ECHO).running() as running:
        yield running


@pytest.fixture
def target(server: ProviderServer) -> str:
    return f"{server.base_url}/"


@pytest.fixture
def sender(db: Database) -> Iterator[Sender]:
    clock = DatabaseClock(db.now)
    channel = WebhookChannel(clock, allow_private=True)
    yield Sender(channel, clock, new_gate())
    channel.close()


def deliver(db: Database, sender: Sender) -> list[Report]:
    with db.transaction() as conn:
        taken = claim(conn, NotificationType.WEBHOOK, 100, 30, followers=FOLLOWERS).taken
    return list(sender.send(taken))


def deliver_and_record(db: Database, sender: Sender) -> None:
    reports = deliver(db, sender)
    with db.transaction() as conn:
        record(conn, reports, FOLLOWERS)


def test_returned_challenge_verifies_the_channel(
    db: Database, directory: Directory, sender: Sender, target: str
) -> None:
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert row(db, id_).status == "SENT"
    assert directory.state(channel_id) == ("verified", True, 0)


@pytest.mark.parametrize(
    ("answer", "code"),
    [(Answer(200, {"challenge": "c-2"}), "CHALLENGE_FAILED"), (Answer(404, ""), "HTTP_404")],
)
def test_other_answer_fails_the_verification_and_can_be_redriven(
    db: Database, directory: Directory, sender: Sender, server: ProviderServer, target: str, answer: Answer, code: str
) -> None:
    server.answers.append(answer)
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert (row(db, id_).status, row(db, id_).error_code) == ("DEAD", code)
    assert directory.state(channel_id) == ("failed", True, 1)
    with db.transaction() as conn:
        conn.execute(
            text(
                "UPDATE notifications SET status = 'ACCEPTED', due_at = clock_timestamp(), finished_at = NULL,"
                " fresh_from = attempts WHERE id = :id"
            ),
            {"id": id_},
        )
    deliver_and_record(db, sender)
    assert directory.state(channel_id) == ("verified", True, 0)


def test_verification_is_undecided_while_it_is_retried(
    db: Database, directory: Directory, sender: Sender, server: ProviderServer, target: str
) -> None:
    server.answers.append(Answer(503, ""))
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert row(db, id_).status == "RETRYING"
    assert directory.state(channel_id) == ("pending", True, 1)
    make_due(db, id_)
    deliver_and_record(db, sender)
    assert directory.state(channel_id) == ("verified", True, 0)


def test_webhook_that_is_gone_is_disabled(
    db: Database, directory: Directory, sender: Sender, server: ProviderServer, target: str
) -> None:
    server.answers.append(Answer(410, ""))
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert row(db, id_).error_code == "HTTP_410"
    assert directory.state(channel_id) == ("failed", False, 1)


def test_ordinary_notification_verifies_nothing(
    db: Database, directory: Directory, sender: Sender, target: str
) -> None:
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target, metadata={})
    deliver_and_record(db, sender)
    assert row(db, id_).status == "SENT"
    assert directory.state(channel_id) == ("pending", True, 1)


def test_only_the_last_challenge_verifies(
    db: Database, directory: Directory, sender: Sender, server: ProviderServer, target: str
) -> None:
    channel_id = directory.add(target)
    directory.challenge(channel_id, target)
    before = deliver(db, sender)
    server.answers.append(Answer(500, ""))
    directory.challenge(channel_id, target)
    with db.transaction() as conn:
        record(conn, before, FOLLOWERS)
    assert directory.state(channel_id) == ("pending", True, 1)


@pytest.mark.parametrize("change", ["target = 'https://elsewhere.example/'", "retired_at = clock_timestamp()"])
def test_changed_address_is_not_verified_by_the_old_answer(
    db: Database, directory: Directory, sender: Sender, target: str, change: str
) -> None:
    channel_id = directory.add(target)
    directory.challenge(channel_id, target)
    reports = deliver(db, sender)
    directory.change(channel_id, change)
    with db.transaction() as conn:
        record(conn, reports, FOLLOWERS)
    assert directory.state(channel_id)[0] == "pending"


def test_late_challenge_verifies_nothing(db: Database, directory: Directory, sender: Sender, target: str) -> None:
    channel_id = directory.add(target)
    directory.challenge(channel_id, target, lives_s=-1)
    deliver_and_record(db, sender)
    assert directory.state(channel_id)[0] == "pending"


def test_challenge_of_another_channel_verifies_nothing(
    db: Database, directory: Directory, sender: Sender, target: str
) -> None:
    mine, other = directory.add(target), directory.add(target)
    id_ = directory.challenge(mine, target)
    with db.transaction() as conn:
        conn.execute(text("UPDATE channel_verifications SET channel_id = :id"), {"id": other})
    deliver_and_record(db, sender)
    assert row(db, id_).status == "SENT"
    assert directory.state(mine)[0] == directory.state(other)[0] == "pending"


def test_verification_is_rolled_back_with_the_record(
    db: Database, directory: Directory, sender: Sender, target: str
) -> None:
    channel_id = directory.add(target)
    directory.challenge(channel_id, target)
    reports = deliver(db, sender)
    with pytest.raises(ZeroDivisionError), db.transaction() as conn:
        record(conn, reports, FOLLOWERS)
        raise ZeroDivisionError
    assert directory.state(channel_id) == ("pending", True, 1)


def test_stored_notification_holds_no_secret(db: Database, directory: Directory, sender: Sender, target: str) -> None:
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert SECRET not in str(row(db, id_))


def test_secrets_of_a_new_address_are_not_sent_to_the_old_one(db: Database, directory: Directory, target: str):
    """A notification that waits for a retry goes to the address that it was written for."""
    channel_id = directory.add(target)
    directory.challenge(channel_id, target)
    directory.change(channel_id, """target = 'https://yeni.org/', target_meta = '{"headers": {"X-Key": "s3cret"}}'""")
    with db.transaction() as conn:
        [taken] = claim(conn, NotificationType.WEBHOOK, 1, 30, followers=FOLLOWERS).taken
    assert taken.notification.recipient == target
    assert taken.recipient_channel is not None
    assert taken.recipient_channel.meta == {}
    directory.challenge(channel_id, "https://yeni.org/")
    with db.transaction() as conn:
        [taken] = claim(conn, NotificationType.WEBHOOK, 1, 30, followers=FOLLOWERS).taken
    assert taken.recipient_channel is not None
    assert taken.recipient_channel.meta == {"headers": {"X-Key": "s3cret"}}


def test_a_refusal_and_the_end_of_a_challenge_do_not_deadlock(db: Database, directory: Directory, target: str) -> None:
    """Both record for the same action and the same channel. Actions are locked before channels."""
    harness = ActionHarness(db)
    channel_id = directory.add(target)
    directory.challenge(channel_id, target)
    action_id = harness.ask(harness.plan({"channel_type": "push"}), harness.user())
    with db.transaction() as conn:
        submitted = submit(conn, NewSubmission(NotificationType.WEBHOOK, target, "", channel_id=channel_id))
    harness.sql("UPDATE notifications SET action_id = :action_id WHERE id = :id", action_id=action_id, id=submitted.id)
    [challenge, refused] = sorted(harness.claim("webhook"), key=lambda claimed: claimed.action_id is not None)
    verdict = Verdict(NotificationStatus.SENT)
    gone = Report(refused, verdict, [Try(None, SendResult(Outcome.PERMANENT, "HTTP_410", disables=True))])
    arrived = [Report(one, verdict) for one in (challenge, *harness.claim("push"))]

    def record_refusal() -> None:
        with db.transaction() as conn:
            record(conn, [gone], FOLLOWERS)

    with ThreadPoolExecutor(1) as pool, db.transaction() as conn:
        refusals: list[Future[None]] = []

        def let_the_other_wait(_conn: Connection, _changes: Sequence[NotificationChange]) -> None:
            refusals.append(pool.submit(record_refusal))
            eventually(lambda: harness.sql(SOMEBODY_WAITS), "the refusal waits for the action")

        actions, channels = FOLLOWERS
        record(conn, arrived, (actions, Follower(lambda _: True, let_the_other_wait), channels))
        conn.commit()
        refusals[0].result(10)
    assert directory.state(channel_id)[:2] == ("verified", False)


def test_refusals_do_not_deadlock_with_a_challenge_to_a_disabled_channel(
    db: Database, directory: Directory, target: str
) -> None:
    """A channel that was disabled before the claim is locked in the order of ids as well."""
    harness = ActionHarness(db)
    first, second = directory.add(target), directory.add(target)
    with db.transaction() as conn:
        for channel_id in (first, second, second):
            submit(conn, NewSubmission(NotificationType.WEBHOOK, target, "", channel_id=channel_id))
    dead = Verdict(NotificationStatus.DEAD, error_code="HTTP_410", failed=True)
    gone = Try(None, SendResult(Outcome.PERMANENT, "HTTP_410", disables=True))
    to_first, to_second, again_to_second = (
        Report(one, dead, [gone]) for one in sorted(harness.claim("webhook"), key=lambda claimed: claimed.id)
    )
    directory.change(first, "enabled = false")
    directory.challenge(first, target)
    [challenge] = harness.claim("webhook")
    assert challenge.is_retired
    ended = Report(challenge, Verdict(NotificationStatus.DEAD, error_code="RECIPIENT_RETIRED"))

    def record_refusals() -> None:
        with db.transaction() as conn:
            record(conn, [to_first, again_to_second], FOLLOWERS)

    with ThreadPoolExecutor(1) as pool, db.transaction() as conn:
        refusals: list[Future[None]] = []

        def let_the_other_wait(*arguments: Any) -> None:
            if "DELETE FROM channel_verifications" in arguments[2]:
                refusals.append(pool.submit(record_refusals))
                eventually(lambda: harness.sql(SOMEBODY_WAITS), "the refusals wait for a channel")

        event.listen(conn, "before_cursor_execute", let_the_other_wait)
        record(conn, [to_second, ended], FOLLOWERS)
        conn.commit()
        refusals[0].result(10)
    assert [directory.state(id_)[1] for id_ in (first, second)] == [False, False]
    assert directory.state(first)[0] == "failed"


def test_refusals_do_not_deadlock_with_a_retirement(db: Database, directory: Directory, target: str) -> None:
    """Retiring a profile locks its channels in the order of ids, whatever their places in the table."""
    harness = ActionHarness(db)
    profile_id = harness.profile(("webhook", target), ("webhook", target))
    first, second = (row.id for row in harness.sql("SELECT id FROM recipient_channels ORDER BY id"))
    with db.transaction() as conn:
        for channel_id in (first, second):
            submit(conn, NewSubmission(NotificationType.WEBHOOK, target, "", channel_id=channel_id))
    dead = Verdict(NotificationStatus.DEAD, error_code="HTTP_410", failed=True)
    gone = Try(None, SendResult(Outcome.PERMANENT, "HTTP_410", disables=True))
    refusals = [Report(one, dead, [gone]) for one in harness.claim("webhook")]
    for owner_id in (harness.profile(), profile_id):
        # Gives the row a new entry in the index, behind that of the other, as an update on a full page does.
        directory.change(first, f"profile_id = {owner_id}")

    def record_refusals() -> None:
        with db.transaction() as conn:
            record(conn, refusals, FOLLOWERS)

    def retire() -> None:
        with db.transaction() as conn:
            PROFILES.retire(conn, profile_id)

    hold = text("SELECT FROM recipient_channels WHERE id = :id FOR NO KEY UPDATE")
    with ThreadPoolExecutor(2) as pool, db.transaction() as holds_second:
        holds_second.execute(hold, {"id": second})
        with db.transaction() as holds_first:
            holds_first.execute(hold, {"id": first})
            ends = [pool.submit(work) for work in (record_refusals, retire)]
            eventually(lambda: len(harness.sql(SOMEBODY_WAITS)) == 2, "both wait for a channel")
        eventually(lambda: len(harness.sql(SOMEBODY_WAITS)) == 2, "both wait again")
        holds_second.commit()
        for end in ends:
            end.result(10)
    rows = harness.sql("SELECT enabled, retired_at IS NOT NULL AS retired FROM recipient_channels")
    assert [(row.enabled, row.retired) for row in rows] == [(False, True)] * 2
