from datetime import UTC, datetime, timedelta

import pytest

from app.delivery.channels.fcm import POLICY as PUSH_POLICY
from app.delivery.messages.retry import LONGEST_WAIT_S, DeadLetter, RetryAt, SendResult, TooLate, decide_retry
from app.delivery.messages.values import Outcome

NOW = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)
TIMEOUT = SendResult(Outcome.UNKNOWN, "TIMEOUT")
BROKEN = SendResult(Outcome.TRANSIENT, "UNREACHABLE")
OVERLOADED = SendResult(Outcome.TRANSIENT, "UNAVAILABLE", overloaded=True)
QUOTA = SendResult(Outcome.TRANSIENT, "QUOTA_EXCEEDED", retry_after_s=60)


def after(seconds: float) -> RetryAt:
    return RetryAt(NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("result", "attempt", "luck", "expected"),
    [
        (BROKEN, 1, 0.0, after(1)),
        (BROKEN, 1, 1.0, after(1.5)),
        (BROKEN, 2, 0.0, after(5)),
        (BROKEN, 3, 0.0, DeadLetter("UNREACHABLE")),
        (TIMEOUT, 1, 0.0, after(1)),
        (TIMEOUT, 2, 0.5, after(6.25)),
        (TIMEOUT, 3, 0.0, DeadLetter("TIMEOUT")),
        (OVERLOADED, 1, 0.0, after(10)),
        (OVERLOADED, 1, 1.0, after(15)),
        (OVERLOADED, 2, 0.0, after(30)),
        (OVERLOADED, 3, 0.0, DeadLetter("UNAVAILABLE")),
        (QUOTA, 1, 0.0, after(60)),
        (QUOTA, 1, 1.0, after(61)),
        (QUOTA, 3, 0.0, DeadLetter("QUOTA_EXCEEDED")),
        (SendResult(Outcome.TRANSIENT, "X", retry_after_s=0), 1, 0.25, after(0.25)),
        (SendResult(Outcome.TRANSIENT, "X", retry_after_s=10**9), 1, 0.0, after(LONGEST_WAIT_S)),
        (SendResult(Outcome.PERMANENT, "SENDER_ID_MISMATCH"), 1, 0.0, DeadLetter("SENDER_ID_MISMATCH")),
        (SendResult(Outcome.PERMANENT), 1, 0.0, DeadLetter("PERMANENT")),
        (SendResult(Outcome.RECIPIENT_GONE, "UNREGISTERED"), 1, 0.0, DeadLetter("UNREGISTERED")),
    ],
)
def test_each_failure_is_retried_or_a_dead_letter(
    result: SendResult, attempt: int, luck: float, expected: object
) -> None:
    assert decide_retry(PUSH_POLICY, result, attempt, NOW, lambda: luck) == expected


@pytest.mark.parametrize(
    ("expires_in_s", "expected"), [(1.001, after(1)), (1, TooLate("UNREACHABLE")), (0.5, TooLate("UNREACHABLE"))]
)
def test_no_retry_after_the_expiry(expires_in_s: float, expected: object) -> None:
    expires_at = NOW + timedelta(seconds=expires_in_s)
    assert decide_retry(PUSH_POLICY, BROKEN, 1, NOW, lambda: 0.0, expires_at) == expected
