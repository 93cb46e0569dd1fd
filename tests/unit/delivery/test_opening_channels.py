"""Which settings open which channels to phone numbers."""

from typing import Any, cast

import pytest

from app.db.database import Database
from app.delivery.channels import sms_gateway, twilio, whatsapp
from app.delivery.channels.base import Wiring
from app.delivery.messages.values import NotificationType
from app.foundation.clock import FakeClock
from app.settings.settings import load_settings

GOOD = {
    "DATABASE_URL": "postgresql://yaninda:hidden@127.0.0.1/yaninda",
    "REDIS_URL": "redis://127.0.0.1/0",
    "AUTH_SECRET": "0123456789-0123456789-0123456789-abc",
}
TWILIO = {"TWILIO_ACCOUNT_SID": "AC0", "TWILIO_AUTH_TOKEN": "hidden", "TWILIO_FROM": "+15005550006"}
WHATSAPP = {"WHATSAPP_PHONE_NUMBER_ID": "106540352242922", "WHATSAPP_ACCESS_TOKEN": "hidden"}
GATEWAY = {"SMS_GATEWAY_URL": "https://gateway.ornek.org/send", "SMS_GATEWAY_TOKEN": "hidden"}
MODULES: list[Any] = [sms_gateway, twilio, whatsapp]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        (GATEWAY, [("sms_gateway", NotificationType.SMS)]),
        (TWILIO, [("twilio", NotificationType.SMS)]),
        (WHATSAPP, [("whatsapp", NotificationType.WHATSAPP)]),
        (TWILIO | WHATSAPP, [("twilio", NotificationType.SMS), ("whatsapp", NotificationType.WHATSAPP)]),
    ],
)
def test_channel_opens_if_its_settings_are_present(
    given: dict[str, str], expected: list[tuple[str, NotificationType]]
) -> None:
    wiring = Wiring(load_settings(GOOD | given), cast("Database", None), FakeClock(), cast(Any, None))
    opened = [channel for module in MODULES if (channel := module.open_channel(wiring))]
    assert [(channel.name, *channel.types) for channel in opened] == expected
    for channel in opened:
        assert "hidden" not in repr(vars(channel))
        channel.close()
