"""A copy without providers refuses what the providers would refuse."""

import pytest

from app.db.database import Database
from app.delivery.channels.recording import TYPES, RecordingChannel
from app.delivery.messages.values import NotificationType, Outcome
from tests.support.delivery import outgoing

PHONE = "+905551234567"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"body": "ş" * 2048}, "PAYLOAD_TOO_LARGE"),
        ({"metadata": {"data": {"from": "x"}}}, "RESERVED_KEY"),
        ({"notification_type": NotificationType.SMS, "recipient": PHONE, "body": "a" * 1601}, "PAYLOAD_TOO_LARGE"),
        ({"notification_type": NotificationType.SMS, "recipient": "+4915112345678"}, "COUNTRY_NOT_ALLOWED"),
    ],
)
def test_message_that_no_provider_takes_is_refused(db: Database, changes: dict[str, object], code: str) -> None:
    channel = RecordingChannel(db, TYPES, countries=("90",))
    [refused, sent] = channel.handle([outgoing(**changes), outgoing()])
    assert (refused.outcome, refused.error_code) == (Outcome.PERMANENT, code)
    assert sent.outcome is Outcome.SENT
