import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from app.delivery.channels.base import MayBegin, OutgoingMessage
from app.delivery.channels.memory import MemoryChannel
from app.delivery.messages.outcomes import Verdict
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import NotificationStatus as S
from app.delivery.messages.values import Outcome, Priority
from app.delivery.sending.breaker_gate import BreakerGate
from app.delivery.sending.sender import Sender
from app.foundation.clock import FakeClock
from app.foundation.errors import Unavailable
from app.redis_store.breakers import BreakerRules, Permit
from tests.support.breakers import MemoryBreakers, new_gate
from tests.support.delivery import PHONE, TABLET, claimed

SENT = SendResult(Outcome.SENT)
DOWN = SendResult(Outcome.TRANSIENT, "UNREACHABLE")
BUSY = SendResult(Outcome.TRANSIENT, "QUOTA_EXCEEDED", retry_after_s=60)
GONE = SendResult(Outcome.RECIPIENT_GONE, "UNREGISTERED")
BUSY_MAILBOX = SendResult(Outcome.TRANSIENT, "SMTP_450", at_fault=False)
SLOW_DOWN = SendResult(Outcome.TRANSIENT, "HTTP_429", retry_after_s=5, at_fault=False)
REFUSED = SendResult(Outcome.PERMANENT, "SENDER_ID_MISMATCH")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def answering(**by_device: SendResult) -> MemoryChannel:
    return MemoryChannel(lambda message: by_device[message.device.device_id if message.device else "none"])


def verdict(channel: MemoryChannel, clock: FakeClock, **changes: object) -> Verdict:
    [report] = Sender(channel, clock, new_gate(), rng=lambda: 0.0).send([claimed(clock, **changes)])
    return report.verdict


def in_s(clock: FakeClock, seconds: float) -> object:
    return clock.now() + timedelta(seconds=seconds)


def test_each_device_gets_the_message(clock: FakeClock) -> None:
    channel = answering(phone=SENT, tablet=SENT)
    assert verdict(channel, clock, devices=(PHONE, TABLET)) == Verdict(S.SENT)
    assert [message.device for message in channel.sent] == [PHONE, TABLET]


def test_device_that_got_the_message_is_skipped_at_the_next_attempt(clock: FakeClock) -> None:
    channel = answering(tablet=SENT)
    settled = {PHONE.device_id: Outcome.SENT}
    assert verdict(channel, clock, devices=(PHONE, TABLET), settled=settled, attempt=2, failures=1).status is S.SENT
    assert [message.device for message in channel.sent] == [TABLET]


def test_notification_is_retried_while_one_device_can_still_succeed(clock: FakeClock) -> None:
    result = verdict(answering(phone=SENT, tablet=DOWN), clock, devices=(PHONE, TABLET))
    assert result == Verdict(S.RETRYING, in_s(clock, 1), "UNREACHABLE", failed=True)


def test_devices_are_retried_together_at_the_latest_time(clock: FakeClock) -> None:
    result = verdict(answering(phone=DOWN, tablet=BUSY), clock, devices=(PHONE, TABLET))
    assert result.due_at == in_s(clock, 60)


def test_one_reached_device_is_enough(clock: FakeClock) -> None:
    assert verdict(answering(phone=SENT, tablet=DOWN), clock, devices=(PHONE, TABLET), failures=2).status is S.SENT
    assert verdict(answering(phone=SENT, tablet=GONE), clock, devices=(PHONE, TABLET)).status is S.SENT


def test_device_reached_at_an_earlier_attempt_counts(clock: FakeClock) -> None:
    settled = {PHONE.device_id: Outcome.SENT}
    result = verdict(answering(tablet=DOWN), clock, devices=(PHONE, TABLET), settled=settled, attempt=3, failures=2)
    assert result.status is S.SENT


@pytest.mark.parametrize("result", [GONE, REFUSED])
def test_permanent_failure_is_a_dead_letter_at_once(clock: FakeClock, result: SendResult) -> None:
    assert verdict(answering(phone=result), clock) == Verdict(S.DEAD, None, result.error_code, failed=True)


def test_last_failed_retry_is_a_dead_letter(clock: FakeClock) -> None:
    result = verdict(answering(phone=DOWN), clock, failures=2)
    assert result == Verdict(S.DEAD, None, "UNREACHABLE", failed=True, retryable=True)


def test_death_of_a_worker_costs_no_retry(clock: FakeClock) -> None:
    assert verdict(answering(phone=DOWN), clock, attempt=9, failures=0).status is S.RETRYING


def test_push_without_a_device_is_given_up_at_once(clock: FakeClock) -> None:
    channel = answering()
    assert verdict(channel, clock, devices=()) == Verdict(S.DEAD, error_code="NO_DEVICE")
    assert channel.sent == []


def test_channel_that_needs_no_device_gets_the_message(clock: FakeClock) -> None:
    channel = MemoryChannel(needs_device=False)
    assert verdict(channel, clock, devices=()).status is S.SENT
    assert [message.device for message in channel.sent] == [None]


def test_nothing_is_sent_at_or_after_the_expiry(clock: FakeClock) -> None:
    channel = answering(phone=SENT)
    assert verdict(channel, clock, expires_at=clock.now()) == Verdict(S.EXPIRED, error_code="TOO_LATE")
    assert channel.sent == []


def test_later_device_gets_nothing_after_the_expiry(clock: FakeClock) -> None:
    def slow(message: OutgoingMessage) -> SendResult:
        clock.advance(5)
        return SENT

    channel = MemoryChannel(slow)
    result = verdict(channel, clock, devices=(PHONE, TABLET), expires_at=clock.now() + timedelta(seconds=4))
    assert result == Verdict(S.SENT)
    assert [message.device for message in channel.sent] == [PHONE]


def test_no_retry_that_would_be_too_late(clock: FakeClock) -> None:
    result = verdict(answering(phone=BUSY), clock, expires_at=clock.now() + timedelta(seconds=59))
    assert result == Verdict(S.EXPIRED, None, "QUOTA_EXCEEDED", failed=True)


def test_sending_does_not_begin_if_the_lease_is_too_short(clock: FakeClock) -> None:
    channel = answering(phone=SENT)
    result = verdict(channel, clock, lease_until=clock.now() + timedelta(seconds=6))
    assert channel.sent == []
    assert result == Verdict(S.ACCEPTED, in_s(clock, 1))


def failing(error: Exception) -> Callable[[OutgoingMessage], SendResult]:
    def fail(message: OutgoingMessage) -> SendResult:
        raise error

    return fail


def test_unavailable_store_costs_no_retry(clock: FakeClock) -> None:
    result = verdict(MemoryChannel(failing(Unavailable("Away."))), clock, failures=1)
    assert result == Verdict(S.RETRYING, in_s(clock, 1))


def test_error_in_a_channel_has_an_unknown_outcome(clock: FakeClock) -> None:
    [report] = Sender(MemoryChannel(failing(KeyError("x"))), clock, new_gate(), rng=lambda: 0.0).send([claimed(clock)])
    assert report.tries[0].result == SendResult(Outcome.UNKNOWN, "CHANNEL_ERROR")
    assert report.verdict.status is S.RETRYING


# ---- breakers ------------------------------------------------------------------------------------------------

RULES = BreakerRules(failures=3, open_s=15)


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def gate(seconds: Seconds) -> BreakerGate:
    return BreakerGate(MemoryBreakers(RULES, seconds), seconds)


def deliver(
    channel: MemoryChannel, clock: FakeClock, gate: BreakerGate, number: int = 1, *, first: int = 0
) -> list[Verdict]:
    """Sends to the phones of so many people."""
    sender = Sender(channel, clock, gate, rng=lambda: 0.0)
    phones = [replace(PHONE, token=f"token {place}") for place in range(first, first + number)]
    return [report.verdict for report in sender.send([claimed(clock, devices=(phone,)) for phone in phones])]


def test_open_breaker_holds_messages(clock: FakeClock, gate: BreakerGate) -> None:
    channel = answering(phone=DOWN)
    deliver(channel, clock, gate, 3)
    [held] = deliver(channel, clock, gate, first=3)
    assert len(channel.sent) == 3
    assert held == Verdict(S.ACCEPTED, in_s(clock, 15), "BREAKER_OPEN")


def test_one_message_of_a_batch_is_the_probe(clock: FakeClock, gate: BreakerGate, seconds: Seconds) -> None:
    deliver(answering(phone=DOWN), clock, gate, 3)
    seconds.now += 15
    channel = MemoryChannel(batch_size=10)
    verdicts = deliver(channel, clock, gate, 4)
    assert [one.status for one in verdicts] == [S.SENT, S.ACCEPTED, S.ACCEPTED, S.ACCEPTED]
    assert len(channel.sent) == 1
    assert [one.status for one in deliver(channel, clock, gate, 4)] == [S.SENT] * 4


def test_poisoned_recipient_does_not_hold_up_the_others(clock: FakeClock, gate: BreakerGate) -> None:
    channel = MemoryChannel(lambda message: DOWN if message.address == "token 0" else SENT)
    for _ in range(12):
        assert [one.status for one in deliver(channel, clock, gate)] == [S.RETRYING]
    assert [one.status for one in deliver(channel, clock, gate, first=1)] == [S.SENT]


def test_probe_is_a_message_to_somebody_without_a_failure(
    clock: FakeClock, gate: BreakerGate, seconds: Seconds
) -> None:
    poisoned = ("token 0", "token 1", "token 2")
    channel = MemoryChannel(lambda message: DOWN if message.address in poisoned else SENT, batch_size=10)
    deliver(channel, clock, gate, 3)
    seconds.now += 15
    channel.sent.clear()
    [waits] = deliver(channel, clock, gate)
    assert waits == Verdict(S.ACCEPTED, in_s(clock, 5), "BREAKER_OPEN")
    deliver(channel, clock, gate, 4)
    assert [message.address for message in channel.sent] == ["token 3"]
    assert [one.status for one in deliver(channel, clock, gate, first=4)] == [S.SENT]


def test_only_message_is_the_probe_although_it_failed_last(
    clock: FakeClock, gate: BreakerGate, seconds: Seconds
) -> None:
    deliver(answering(phone=DOWN), clock, gate, 3)
    seconds.now += 25
    channel = answering(phone=SENT)
    assert [one.status for one in deliver(channel, clock, gate, first=2)] == [S.SENT]


def test_notification_is_sent_if_one_device_has_it_and_the_breaker_holds_the_other_too_long(
    clock: FakeClock, gate: BreakerGate
) -> None:
    deliver(answering(phone=DOWN), clock, gate, 3)
    expires_at = clock.now() + timedelta(seconds=10)
    half = claimed(clock, devices=(PHONE, TABLET), settled={TABLET.device_id: Outcome.SENT}, expires_at=expires_at)
    [report] = Sender(MemoryChannel(), clock, gate, rng=lambda: 0.0).send([half])
    assert report.verdict == Verdict(S.SENT)


@pytest.mark.parametrize("result", [GONE, REFUSED, BUSY_MAILBOX, SLOW_DOWN])
def test_probe_without_evidence_about_the_provider_closes_no_breaker(
    clock: FakeClock, gate: BreakerGate, seconds: Seconds, result: SendResult
) -> None:
    deliver(answering(phone=DOWN), clock, gate, 3)
    seconds.now += 15
    deliver(answering(phone=result), clock, gate)
    channel = MemoryChannel(batch_size=10)
    deliver(channel, clock, gate, 4)
    assert len(channel.sent) == 1, "one more probe, because the breaker is still half open"


def test_success_before_the_breaker_opened_is_no_successful_probe(clock: FakeClock, seconds: Seconds) -> None:
    shared = MemoryBreakers(RULES, seconds)
    gate, elsewhere = BreakerGate(shared, seconds), BreakerGate(shared, seconds)
    deliver(answering(phone=SENT), clock, gate)
    deliver(answering(phone=DOWN), clock, elsewhere, 3)
    seconds.now += 15
    deliver(MemoryChannel(failing(Unavailable("Away."))), clock, gate)
    channel = MemoryChannel(batch_size=10)
    deliver(channel, clock, gate, 4)
    assert len(channel.sent) == 1, "one probe, because nothing was sent before it"


@pytest.mark.parametrize("result", [GONE, REFUSED, BUSY_MAILBOX, SLOW_DOWN])
def test_failures_that_are_not_the_providers_fault_open_no_breaker(
    clock: FakeClock, gate: BreakerGate, result: SendResult
) -> None:
    deliver(answering(phone=result), clock, gate, 50)
    assert [one.status for one in deliver(answering(phone=SENT), clock, gate)] == [S.SENT]


def test_providers_of_one_channel_have_their_own_breakers(clock: FakeClock, gate: BreakerGate) -> None:
    class Hosts(MemoryChannel):
        def provider(self, message: OutgoingMessage) -> str:
            return message.notification.recipient

        def recipient(self, message: OutgoingMessage) -> str:
            return str(message.id)

    channel = Hosts(lambda message: DOWN if message.notification.recipient == "down" else SENT, batch_size=10)
    sender = Sender(channel, clock, gate, rng=lambda: 0.0)
    list(sender.send([claimed(clock, recipient="down") for _ in range(3)]))
    reports = sender.send([claimed(clock, recipient=host) for host in ("up", "down", "up")])
    statuses = {report.claimed.notification.recipient: report.verdict.status for report in reports}
    assert statuses == {"up": S.SENT, "down": S.ACCEPTED}


def test_unavailable_breakers_allow_all_messages(clock: FakeClock) -> None:
    class Away(MemoryBreakers):
        def ask(self, name: str, probe_s: float, recipients: Sequence[str]) -> Permit:
            raise Unavailable("Away.")

        def tell(self, name: str, *, succeeded: int, failed: Sequence[str] = (), probe: bool = False) -> None:
            raise Unavailable("Away.")

    assert [one.status for one in deliver(answering(phone=SENT), clock, BreakerGate(Away()), 3)] == [S.SENT] * 3


def test_each_report_belongs_to_its_notification(clock: FakeClock) -> None:
    wanted = [
        claimed(clock, recipient_user_id=1, devices=(PHONE, TABLET)),
        claimed(clock, recipient_user_id=2, devices=()),
        claimed(clock, recipient_user_id=3),
        claimed(clock, recipient_user_id=4, expires_at=clock.now()),
        claimed(clock, recipient_user_id=5),
    ]
    channel = MemoryChannel(
        lambda message: REFUSED if message.notification.recipient_user_id == 3 else SENT, batch_size=3
    )
    reports = {report.claimed.id: report for report in Sender(channel, clock, new_gate()).send(wanted)}
    found = [(reports[one.id].verdict.status, len(reports[one.id].tries)) for one in wanted]
    assert found == [(S.SENT, 2), (S.DEAD, 0), (S.DEAD, 1), (S.EXPIRED, 0), (S.SENT, 1)]


def test_report_does_not_wait_for_slower_messages_of_its_batch(clock: FakeClock) -> None:
    answered: list[int] = []

    class SecondFirst(MemoryChannel):
        def answers(
            self, messages: Sequence[OutgoingMessage], may_begin: MayBegin
        ) -> Iterator[tuple[int, SendResult | None]]:
            for place in (1, 0, 2):
                answered.append(place)
                yield place, SENT

    wanted = [claimed(clock, recipient=recipient) for recipient in ("user:1", "user:2", "user:3")]
    reports = Sender(SecondFirst(batch_size=10), clock, new_gate()).send(wanted)
    assert next(reports).claimed is wanted[1]
    assert answered == [1]
    assert [report.claimed for report in reports] == [wanted[0], wanted[2]]


def test_messages_that_were_answered_keep_their_results_when_their_batch_fails(clock: FakeClock) -> None:
    class Breaks(MemoryChannel):
        def answers(
            self, messages: Sequence[OutgoingMessage], may_begin: MayBegin
        ) -> Iterator[tuple[int, SendResult | None]]:
            yield 1, SENT
            raise KeyError("x")

    reports = list(Sender(Breaks(batch_size=10), clock, new_gate()).send([claimed(clock), claimed(clock)]))
    assert [report.tries[0].result for report in reports] == [SENT, SendResult(Outcome.UNKNOWN, "CHANNEL_ERROR")]


def test_everybodys_first_message_is_sent_before_anybodys_second(clock: FakeClock) -> None:
    phones = tuple(replace(PHONE, device_id=f"phone {number}") for number in range(10))
    channel = MemoryChannel(batch_size=3)
    many = [claimed(clock, recipient="user:1", devices=phones) for _ in range(20)]
    other = claimed(clock, recipient="user:2", devices=(TABLET, PHONE))
    urgent = claimed(clock, recipient="user:3", priority=Priority.URGENT)
    list(Sender(channel, clock, new_gate()).send([*many, other, urgent]))
    recipients = [message.notification.recipient for message in channel.sent]
    assert recipients[:5] == ["user:3", "user:1", "user:2", "user:1", "user:2"]
    assert len(recipients) == 203


def test_worker_that_no_longer_holds_its_batch_begins_no_further_message(clock: FakeClock) -> None:
    held = [True]

    def answer(message: OutgoingMessage) -> SendResult:
        held[0] = False
        return SENT

    channel = MemoryChannel(answer)
    sender = Sender(channel, clock, new_gate(), holds=lambda _: held[0])
    first, second = sender.send([claimed(clock), claimed(clock)])
    assert len(channel.sent) == 1
    assert (first.verdict.status, second.verdict.status, second.tries) == (S.SENT, S.ACCEPTED, [])


def test_sending_leaves_nothing_to_the_search_for_garbage(clock: FakeClock) -> None:
    sender = Sender(answering(phone=SENT, tablet=DOWN), clock, new_gate())
    gc.collect()
    gc.disable()
    try:
        assert len(list(sender.send([claimed(clock, devices=(PHONE, TABLET))]))) == 1
        assert gc.collect() == 0
    finally:
        gc.enable()
