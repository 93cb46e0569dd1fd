"""Submitting a notification: once for each key, and only if it can be sent."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import psycopg
import pytest

from app.db.database import Database
from app.delivery.messages.submit import NewSubmission, SubmissionKey, refusals_of_submission, submit
from app.delivery.messages.values import NotificationType, Priority
from app.delivery.messages.views import get_notification
from app.foundation.errors import IdempotencyKeyReused, InvalidValues
from app.settings.settings import Settings
from app.users.contract import EVERYTHING
from tests.support.delivery import add_user, row, statuses

MAIL = NewSubmission(NotificationType.EMAIL, "ayse@ornek.org", body="Hoş geldiniz", subject="Merhaba")


def later(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def hand_in(db: Database, new: NewSubmission = MAIL, key: SubmissionKey | None = None) -> Any:
    with db.transaction() as conn:
        return submit(conn, new, key)


def test_submitted_notification_is_queued(db: Database) -> None:
    new = replace(MAIL, priority=Priority.HIGH, metadata={"campaignId": "123"}, expires_at=later(60))
    submitted = hand_in(db, new)
    with db.transaction() as conn:
        view = get_notification(conn, EVERYTHING, submitted.id)
    assert submitted.is_new
    assert (view.recipient, view.subject, view.body) == (new.recipient, new.subject, new.body)
    assert (view.status, view.priority, view.metadata) == ("ACCEPTED", Priority.HIGH, {"campaignId": "123"})
    assert (view.created_at, view.expires_at) == (submitted.submitted_at, new.expires_at)
    assert (view.recipient_user_id, view.notification_type) == (None, NotificationType.EMAIL)


@pytest.mark.parametrize("type_", [NotificationType.PUSH, NotificationType.IN_APP])
def test_user_address_and_notification_id_are_stored(db: Database, type_: Any) -> None:
    user_id = add_user(db)
    submitted = hand_in(db, NewSubmission(type_, f"user:{user_id}", "b", metadata={"data": {"type": "hello"}}))
    stored = row(db, submitted.id)
    assert stored.recipient_user_id == user_id
    assert stored.metadata["data"] == {"type": "hello", "notificationId": str(submitted.id)}


def test_user_prefix_is_plain_text_in_other_addresses(db: Database) -> None:
    assert row(db, hand_in(db, NewSubmission(NotificationType.AUDIT, "user:99", "b")).id).recipient_user_id is None


def test_type_is_announced_at_the_commit(db: Database, settings: Settings) -> None:
    with psycopg.connect(settings.database_url, autocommit=True) as listener:
        listener.execute("LISTEN delivery")
        hand_in(db)
        hand_in(db, NewSubmission(NotificationType.SMS, "+905551234567", "b"))
        assert [one.payload for one in listener.notifies(timeout=0.3)] == ["EMAIL", "SMS"]


def test_all_errors_that_only_the_database_finds_are_named_at_once(db: Database) -> None:
    new = NewSubmission(NotificationType.PUSH, "user:4711", "b", expires_at=later(-1))
    with pytest.raises(InvalidValues) as refused:
        hand_in(db, new, SubmissionKey(add_user(db), "k"))
    assert set(refused.value.problems) == {"recipient", "expiresAt"}
    assert statuses(db) == {}


def test_validation_returns_all_errors_of_a_request(db: Database) -> None:
    with db.reading() as conn:
        push = refusals_of_submission(
            conn, EVERYTHING, NotificationType.PUSH, "user:4711", {"data": 5}, later(-1), "90"
        )
        mail = refusals_of_submission(conn, EVERYTHING, NotificationType.EMAIL, "nobody", None, None, "90")
        unread = refusals_of_submission(conn, EVERYTHING, None, "nobody", None, later(-1), "90")
    assert (set(push), set(mail), set(unread)) == ({"recipient", "metadata", "expiresAt"}, {"recipient"}, {"expiresAt"})


OTHERS = [
    {"recipient": "fatma@ornek.org"},
    {"subject": ""},
    {"body": "Hoş geldiniz!"},
    {"priority": Priority.LOW},
    {"metadata": {"a": 1}},
    {"expires_at": datetime(2099, 1, 1, tzinfo=UTC)},
    {"notification_type": NotificationType.AUDIT},
    {"channel_id": 5},
]


@pytest.mark.parametrize("change", OTHERS, ids=[next(iter(one)) for one in OTHERS])
def test_key_of_another_request_is_refused(db: Database, change: dict[str, Any]) -> None:
    key = SubmissionKey(add_user(db), "k")
    hand_in(db, MAIL, key)
    with pytest.raises(IdempotencyKeyReused):
        hand_in(db, replace(MAIL, **change), key)
    assert statuses(db) == {"ACCEPTED": 1}


def test_order_of_metadata_does_not_change_the_request(db: Database) -> None:
    key = SubmissionKey(add_user(db), "k")
    first = hand_in(db, replace(MAIL, metadata={"a": 1, "b": 2}), key)
    assert hand_in(db, replace(MAIL, metadata={"b": 2, "a": 1}), key).id == first.id


def test_key_belongs_to_one_caller(db: Database) -> None:
    mine, theirs = (SubmissionKey(add_user(db), "k") for _ in range(2))
    one, other = hand_in(db, MAIL, mine), hand_in(db, replace(MAIL, body="another"), theirs)
    assert one.id != other.id
    assert hand_in(db, MAIL, mine).id == one.id
    assert hand_in(db, replace(MAIL, body="another"), theirs).id == other.id
    assert statuses(db) == {"ACCEPTED": 2}


def test_thirty_parallel_requests_with_one_key_write_one_row(db: Database) -> None:
    key, together = SubmissionKey(add_user(db), "k"), Barrier(30)

    def hand_in_with_others(_number: int) -> Any:
        together.wait()
        return hand_in(db, MAIL, key)

    with ThreadPoolExecutor(30) as threads:
        all_of_them = list(threads.map(hand_in_with_others, range(30)))
    assert len({one.id for one in all_of_them}) == 1
    assert sum(one.is_new for one in all_of_them) == 1
    assert statuses(db) == {"ACCEPTED": 1}


def test_key_of_a_failed_transaction_is_free(db: Database) -> None:
    key = SubmissionKey(add_user(db), "k")
    with pytest.raises(ZeroDivisionError), db.transaction() as conn:
        submit(conn, MAIL, key)
        raise ZeroDivisionError
    assert hand_in(db, replace(MAIL, body="another"), key).is_new


def test_log_holds_no_address() -> None:
    assert "ayse" not in repr(MAIL)
    assert "Hoş" not in repr(MAIL)
