"""What no provider takes is refused when it is submitted."""

from typing import Any

import pytest

from app.delivery.messages.addresses import is_abroad
from app.delivery.messages.content import fault_of_push, problems_with_content, push_content
from app.delivery.messages.values import NotificationType

SMS, PUSH, WHATSAPP = NotificationType.SMS, NotificationType.PUSH, NotificationType.WHATSAPP


def fields(type_: NotificationType, body: str, metadata: dict[str, Any] | None = None, subject: str = "") -> set[str]:
    return set(problems_with_content(type_, subject, body, metadata or {}))


def test_longest_texts_are_taken() -> None:
    assert (
        fields(SMS, "ş" * 1600) == fields(WHATSAPP, "ş" * 4096) == fields(NotificationType.EMAIL, "a" * 30_000) == set()
    )
    assert fields(SMS, "ş" * 1601) == fields(WHATSAPP, "ş" * 4097) == {"body"}


def test_words_beside_a_template_of_whatsapp_may_be_long() -> None:
    assert fields(WHATSAPP, "ş" * 4097, {"whatsappTemplate": {"name": "yeni_talep"}}) == set()


def test_size_of_a_push_counts_bytes_and_the_id_that_apps_get() -> None:
    empty = len('{"data":{"notificationId":"","type":"t"},"notification":{"title":"T","body":""}}') + 36
    data = {"data": {"type": "t"}}
    assert fields(PUSH, "a" * (4096 - empty), data, subject="T") == set()
    assert fields(PUSH, "a" * (4097 - empty), data, subject="T") == {"body"}
    assert fields(PUSH, "ş" * 2048) == {"body"}


@pytest.mark.parametrize("key", ["from", "message_type", "google.sent_time", "gcm.notification.title"])
def test_keys_of_fcm_are_refused(key: str) -> None:
    assert fields(PUSH, "b", {"data": {key: "x"}}) == {"metadata"}
    assert fault_of_push(push_content("", "", {key: "x"})) == "RESERVED_KEY"
    assert fields(NotificationType.IN_APP, "b", {"data": {key: "x"}}) == set()


@pytest.mark.parametrize("key", ["From", "googled", "gcmx", "type", ""])
def test_other_keys_are_taken(key: str) -> None:
    assert fields(PUSH, "b", {"data": {key: "x"}}) == set()


@pytest.mark.parametrize(
    ("type_", "phone", "countries", "abroad"),
    [
        (SMS, "+905551234567", ("90",), False),
        (SMS, "+4915112345678", ("90",), True),
        (SMS, "+4915112345678", ("90", "49"), False),
        (SMS, "+4915112345678", (), False),
        (WHATSAPP, "+4915112345678", ("90",), False),
    ],
)
def test_sms_go_to_the_listed_countries(type_: NotificationType, phone: str, countries: Any, abroad: bool) -> None:
    assert is_abroad(type_, phone, countries) is abroad
