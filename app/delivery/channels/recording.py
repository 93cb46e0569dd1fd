"""Keeps the messages of types without a provider instead of sending them. Not for production.

It refuses what the providers would refuse, so that nobody finds out in production.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import text

from app.db.database import Database
from app.delivery.channels.base import OutgoingMessage, SingleProvider, Wiring
from app.delivery.messages.addresses import is_abroad
from app.delivery.messages.content import LARGEST_PUSH_BYTES, LARGEST_WEB_PUSH_BYTES, fault_of_push, push_content
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.traits import traits_of
from app.delivery.messages.values import Device, Notification, NotificationType, Outcome
from app.settings.settings import PushMode, Settings
from app.users.models import AddressKind

TYPES = (NotificationType.PUSH, NotificationType.EMAIL, NotificationType.SMS, NotificationType.WHATSAPP)
POLICY = RetryPolicy(timeout_s=3.0, retries=2)
# These settings decide which types have a provider.
SETTINGS = (
    "environment",
    "push",
    "vapid_public_key",
    "smtp_url",
    "sms_gateway_url",
    "twilio_account_sid",
    "whatsapp_phone_number_id",
    "sms_countries",
    *names_of_settings(TYPES[0]),
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
        address_kinds: frozenset[AddressKind] = frozenset(AddressKind),
        countries: tuple[str, ...] = (),
        policy: RetryPolicy = POLICY,
    ) -> None:
        super().__init__("recording", types, policy)
        self.address_kinds = address_kinds
        self._db = db
        self._countries = countries

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        faults = [self._fault(message.notification, message.device) for message in messages]
        rows = [_row(message) for message, fault in zip(messages, faults, strict=True) if fault is None]
        if rows:
            with self._db.transaction() as conn:
                conn.execute(_RECORD, {"rows": json.dumps(rows, ensure_ascii=False)})
        return [_result(message, fault) for message, fault in zip(messages, faults, strict=True)]

    def _fault(self, notification: Notification, device: Device | None) -> str | None:
        traits = traits_of(notification.notification_type)
        if traits.is_push:
            is_browser = device is not None and device.address_kind is AddressKind.WEB_PUSH
            content = push_content(notification.subject, notification.body, notification.data)
            return fault_of_push(content, LARGEST_WEB_PUSH_BYTES if is_browser else LARGEST_PUSH_BYTES)
        if is_abroad(notification.notification_type, notification.recipient, self._countries):
            return "COUNTRY_NOT_ALLOWED"
        text = notification.body or notification.subject
        return "PAYLOAD_TOO_LARGE" if traits.longest_text is not None and len(text) > traits.longest_text else None


def _result(message: OutgoingMessage, fault: str | None) -> SendResult:
    if fault is not None:
        return SendResult(Outcome.PERMANENT, fault, at_fault=False)
    return SendResult(Outcome.SENT, provider_message_id=f"recorded:{message.id}")


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
    settings = wiring.settings
    types = settings.recorded_types
    if not types:
        return None
    return RecordingChannel(
        wiring.db,
        types,
        address_kinds=_recorded_kinds(settings),
        countries=settings.sms_country_codes,
        policy=policy_of(settings, TYPES[0], POLICY),
    )


def _recorded_kinds(settings: Settings) -> frozenset[AddressKind]:
    phones = {AddressKind.TOKEN, AddressKind.FID} if settings.push is PushMode.RECORDING else set[AddressKind]()
    browsers = {AddressKind.WEB_PUSH} if settings.vapid_public_key is None else set[AddressKind]()
    return frozenset(phones | browsers)
