"""Which outcomes are recorded by one statement, and which need a transaction."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from app.delivery.messages.claims import Claimed
from app.delivery.messages.outcomes import Report, Try, Verdict, fits_one_statement
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import CHALLENGE, Notification, NotificationStatus, Outcome, Priority
from app.delivery.role import FOLLOWERS

NOW = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)


def claimed(**metadata: Any) -> Claimed:
    notification = Notification(uuid4(), "WEBHOOK", "https://ornek.org/", "", "", Priority.NORMAL, NOW, metadata)
    return Claimed(notification, attempt=1, failures=0, lease_until=NOW)


SENT = Report(claimed(), Verdict(NotificationStatus.SENT), [Try(None, SendResult(Outcome.SENT))])


@pytest.mark.parametrize(
    "report",
    [
        SENT,
        replace(SENT, verdict=Verdict(NotificationStatus.RETRYING, due_at=NOW, failed=True)),
        replace(SENT, verdict=Verdict(NotificationStatus.EXPIRED, error_code="TOO_LATE"), tries=[]),
        replace(SENT, verdict=Verdict(NotificationStatus.DEAD, error_code="NO_DEVICE"), tries=[]),
    ],
)
def test_what_nobody_else_waits_for_is_one_statement(report: Report) -> None:
    assert fits_one_statement(report, FOLLOWERS)


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(replace(SENT, claimed=replace(SENT.claimed, action_id=uuid4())), id="step of an action"),
        pytest.param(replace(SENT, claimed=claimed(**{CHALLENGE: "word"})), id="challenge"),
        pytest.param(replace(SENT, verdict=Verdict(NotificationStatus.DEAD)), id="dead letter"),
        pytest.param(
            replace(SENT, tries=[*SENT.tries, Try(None, SendResult(Outcome.RECIPIENT_GONE))]), id="phone is forgotten"
        ),
        pytest.param(
            replace(SENT, tries=[Try(None, SendResult(Outcome.PERMANENT, disables=True))]), id="channel is switched off"
        ),
    ],
)
def test_what_has_consequences_is_committed_with_them(report: Report) -> None:
    assert not fits_one_statement(report, FOLLOWERS)
