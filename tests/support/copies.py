"""Sends notifications through the channels that write to our own database, which keep copies of them."""

from collections.abc import Sequence

from app.api.services import Services
from app.delivery.channels.base import OutgoingMessage
from app.delivery.channels.in_app import InAppChannel
from app.delivery.channels.recording import RecordingChannel
from app.delivery.messages.claims import Claimed, claim
from app.delivery.messages.outcomes import Report, Try, Verdict, record
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import Device, NotificationStatus, NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.redis_store import hints

RECORDED = (NotificationType.PUSH, NotificationType.SMS, NotificationType.EMAIL)


def send_all(services: Services) -> None:
    for type_ in (*RECORDED, NotificationType.IN_APP):
        with services.db.transaction() as conn:
            taken = claim(conn, type_, 200, 30, followers=FOLLOWERS).taken
        record_all(services, taken)


def record_all(services: Services, taken: Sequence[Claimed]) -> None:
    """Sends what was claimed, with the words that it had then, and records the result."""
    in_app = InAppChannel(services.db, hints.connect(services.settings.redis_url, 1))
    recording = RecordingChannel(services.db, RECORDED)
    for one in taken:
        is_in_app = one.notification.notification_type == NotificationType.IN_APP
        channel = in_app if is_in_app else recording
        channel.handle([OutgoingMessage(one.notification, _device(one))])
    in_app.close()
    sent = SendResult(Outcome.SENT, provider_message_id="provider:1")
    with services.db.transaction() as conn:
        reports = [Report(one, Verdict(NotificationStatus.SENT), [Try(_device(one), sent)]) for one in taken]
        record(conn, reports, FOLLOWERS)


def _device(one: Claimed) -> Device | None:
    return one.devices[0] if one.devices else None
