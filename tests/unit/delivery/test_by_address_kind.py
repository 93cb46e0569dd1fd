"""Pushes to a person with phones and browsers: each device gets its message by its own channel."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from app.delivery.channels.base import Channel
from app.delivery.channels.by_address_kind import ByAddressKind
from app.delivery.channels.memory import MemoryChannel
from app.delivery.channels.registry import Channels
from app.delivery.channels.unserved import NO_CHANNEL
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import Device, Outcome
from app.foundation.errors import Unavailable
from app.users.models import AddressKind
from tests.support.delivery import PHONE, TABLET, outgoing

BROWSER = Device("browser", "{}", AddressKind.WEB_PUSH)
PHONES = frozenset({AddressKind.TOKEN, AddressKind.FID})
BROWSERS = frozenset({AddressKind.WEB_PUSH})
SENT, GONE = SendResult(Outcome.SENT), SendResult(Outcome.RECIPIENT_GONE, "SUBSCRIPTION_GONE")


def memory(kinds: frozenset[AddressKind], answer: Callable[[Any], SendResult], **options: Any) -> MemoryChannel:
    channel = MemoryChannel(answer, **options)
    channel.address_kinds = kinds
    channel.name = "phones" if kinds == PHONES else "browsers"
    return channel


def combined(*channels: Channel) -> Channel:
    return Channels(channels).find("PUSH")


def sent_by(channel: MemoryChannel) -> list[str]:
    return [message.device.device_id for message in channel.sent if message.device is not None]


def test_each_device_is_sent_to_by_its_channel() -> None:
    phones, browsers = memory(PHONES, lambda _: SENT), memory(BROWSERS, lambda _: GONE)
    both = combined(phones, browsers)
    messages = [outgoing(device) for device in (BROWSER, PHONE, TABLET, BROWSER)]
    assert both.handle(messages) == [GONE, SENT, SENT, GONE]
    assert (sent_by(phones), sent_by(browsers)) == (["phone", "tablet"], ["browser", "browser"])
    assert [both.handler(one.device) for one in messages] == ["browsers", "phones", "phones", "browsers"]
    assert [both.provider(one) for one in messages[:2]] == ["browsers", "phones"]


def test_one_channel_for_all_kinds_is_used_as_it_is() -> None:
    first = MemoryChannel()
    assert combined(first, memory(BROWSERS, lambda _: SENT)) is first


def test_kind_without_a_channel_is_given_up() -> None:
    both = combined(memory(PHONES, lambda _: SENT))
    assert both.handle([outgoing(PHONE), outgoing(BROWSER)]) == [SENT, NO_CHANNEL]


@pytest.mark.parametrize("needs_device", [True, False])
def test_person_without_a_device_is_left_to_the_channel_of_phones(needs_device: bool) -> None:
    phones = memory(PHONES, lambda _: SENT, needs_device=needs_device)
    both = combined(phones, memory(BROWSERS, lambda _: SENT, needs_device=not needs_device))
    assert both.needs_device is needs_device
    assert both.handle([outgoing(None)]) == [SENT]
    assert len(phones.sent) == 1


def test_channels_send_at_the_same_time() -> None:
    meet = threading.Barrier(2, timeout=10)

    def answer(_message: Any) -> SendResult:
        meet.wait()
        return SENT

    both = combined(memory(PHONES, answer), memory(BROWSERS, answer))
    assert both.handle([outgoing(PHONE), outgoing(BROWSER)]) == [SENT, SENT]


@pytest.mark.parametrize("first", [PHONES, BROWSERS])
def test_failure_of_a_channel_comes_after_the_answers_of_the_other(first: frozenset[AddressKind]) -> None:
    def fail(_message: Any) -> SendResult:
        raise OSError

    failing = memory(first, fail)
    other = memory(BROWSERS if first == PHONES else PHONES, lambda _: SENT)
    answers = combined(failing, other).answers([outgoing(PHONE), outgoing(BROWSER)], lambda: True)
    assert next(answers) == (1 if first == PHONES else 0, SENT)
    with pytest.raises(OSError):
        next(answers)


def test_failure_that_may_have_sent_goes_before_one_that_has_not() -> None:
    def fail_with(error: Exception) -> Callable[[Any], SendResult]:
        def fail(_message: Any) -> SendResult:
            raise error

        return fail

    both = combined(memory(PHONES, fail_with(Unavailable("No."))), memory(BROWSERS, fail_with(OSError())))
    with pytest.raises(OSError):
        both.handle([outgoing(PHONE), outgoing(BROWSER)])


def test_longest_pauses_and_smallest_batch_count() -> None:
    careful = RetryPolicy(timeout_s=3.0, retries=2, overloaded_backoff_s=(10.0,))
    both = combined(
        memory(PHONES, lambda _: SENT, batch_size=50), memory(BROWSERS, lambda _: SENT, batch_size=64, policy=careful)
    )
    assert isinstance(both, ByAddressKind)
    assert (both.policy, both.batch_size, both.longest_s) == (careful, 50, 6.0)
