"""Stores messages that the app shows when the user opens it. With a hint through Redis, an open app shows a message at
once."""

import json
from collections.abc import Sequence
from typing import Any

import structlog
from sqlalchemy import text

from app.db.database import Database, limit_statements
from app.delivery.channels.base import OutgoingMessage, SingleProvider, Wiring
from app.delivery.messages.addresses import InvalidAddress, check_address
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.submit import user_in
from app.delivery.messages.values import Notification, NotificationType, Outcome
from app.redis_store import keys
from app.redis_store.contract import RedisUnavailable
from app.redis_store.hints import Hints

log = structlog.get_logger(__name__)

TYPES = (NotificationType.IN_APP,)
POLICY = RetryPolicy(timeout_s=2.0, retries=3)
SETTINGS = names_of_settings(TYPES[0])


# A repeated message is stored once. Rows are inserted in the order of their ids, so that two batches with common
# messages cannot deadlock.
_WRITE = text(
    """
    WITH given AS (
        SELECT row.* FROM json_to_recordset(CAST(:rows AS json)) AS row(
               notification_id uuid, user_id bigint, subject text, body text, data jsonb)
          JOIN users u ON u.id = row.user_id
    ), written AS (
        INSERT INTO in_app_messages (notification_id, user_id, subject, body, data)
        SELECT notification_id, user_id, subject, body, data FROM given ORDER BY notification_id
            ON CONFLICT (notification_id) DO NOTHING
    )
    SELECT notification_id FROM given
    """
)


class InAppChannel(SingleProvider):
    batch_size = 50

    def __init__(self, db: Database, hints: Hints, *, policy: RetryPolicy = POLICY) -> None:
        super().__init__("in_app", TYPES, policy)
        self._db = db
        self._hints = hints

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        readers = {message.id: reader for message in messages if (reader := _reader(message.notification)) is not None}
        rows = [_row(message.notification, readers[message.id]) for message in messages if message.id in readers]
        if not rows:
            return [SendResult(Outcome.PERMANENT, "INVALID_ADDRESS", at_fault=False) for _ in messages]
        with self._db.transaction() as conn:
            limit_statements(conn, self.policy.timeout_s)
            written = set(conn.execute(_WRITE, {"rows": json.dumps(rows, ensure_ascii=False)}).scalars())
        self._publish_hints([(keys.in_app(readers[id_]), json.dumps({"notificationId": str(id_)})) for id_ in written])
        return [_result(message, written, message.id in readers) for message in messages]

    def _publish_hints(self, hints: list[tuple[str, str]]) -> None:
        try:
            self._hints.publish(hints)
        except RedisUnavailable:
            log.warning("in_app_hint_lost", count=len(hints))

    def close(self) -> None:
        self._hints.close()


def _reader(notification: Notification) -> int | None:
    if notification.recipient_user_id is not None:
        return notification.recipient_user_id
    try:
        return user_in(
            notification.notification_type, check_address(notification.notification_type, notification.recipient, "")
        )
    except InvalidAddress:
        return None


def _row(notification: Notification, reader: int) -> dict[str, Any]:
    return {
        "notification_id": str(notification.id),
        "user_id": reader,
        "subject": notification.subject,
        "body": notification.body,
        "data": notification.data,
    }


def _result(message: OutgoingMessage, written: set[Any], is_address: bool) -> SendResult:
    if message.id in written:
        return SendResult(Outcome.SENT, provider_message_id=f"in_app:{message.id}")
    return SendResult(Outcome.PERMANENT, "PERSON_NOT_FOUND" if is_address else "INVALID_ADDRESS", at_fault=False)


def open_channel(wiring: Wiring) -> InAppChannel:
    return InAppChannel(wiring.db, wiring.hints, policy=policy_of(wiring.settings, TYPES[0], POLICY))
