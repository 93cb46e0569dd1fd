"""Keeps the messages of types without a provider instead of sending them. Not for production."""

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import text

from app.db.database import Database
from app.delivery.channels.base import OutgoingMessage, SingleProvider, Wiring
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import NotificationType, Outcome

TYPES = (NotificationType.PUSH, NotificationType.EMAIL, NotificationType.SMS, NotificationType.WHATSAPP)
POLICY = RetryPolicy(timeout_s=3.0, retries=2)
# These settings decide which types have a provider.
SETTINGS = (
    "environment",
    "push",
    "smtp_url",
    "sms_gateway_url",
    "twilio_account_sid",
    "whatsapp_phone_number_id",
)

# A repeated message is kept once, like on a phone.
_RECORD = text(
    """
    INSERT INTO recorded_pushes (notification_id, notification_type, recipient, user_id, device_id, title, body, data)
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row(
           notification_id uuid, notification_type text, recipient text, user_id bigint, device_id text, title text,
           body text, data jsonb)
        ON CONFLICT (notification_id, device_id) DO NOTHING
    """
)


class RecordingChannel(SingleProvider):
    batch_size = 50

    def __init__(
        self,
        db: Database,
        types: Collection[str] = (NotificationType.PUSH,),
        *,
        policy: RetryPolicy = POLICY,
    ) -> None:
        super().__init__("recording", types, policy)
        self._db = db

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        rows = json.dumps([_row(message) for message in messages], ensure_ascii=False)
        with self._db.transaction() as conn:
            conn.execute(_RECORD, {"rows": rows})
        return [SendResult(Outcome.SENT, provider_message_id=f"recorded:{message.id}") for message in messages]


def _row(message: OutgoingMessage) -> dict[str, Any]:
    notification = message.notification
    return {
        "notification_id": str(notification.id),
        "notification_type": notification.notification_type,
        "recipient": notification.recipient,
        "user_id": notification.recipient_user_id,
        "device_id": message.device.device_id if message.device else None,
        "title": notification.subject or None,
        "body": notification.body or None,
        "data": notification.data,
    }


def open_channel(wiring: Wiring) -> RecordingChannel | None:
    types = wiring.settings.recorded_types
    return RecordingChannel(wiring.db, types) if types else None
