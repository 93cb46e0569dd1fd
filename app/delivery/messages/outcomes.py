"""Records the results of attempts. SQL only; the caller owns the transaction."""

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, TextClause, text

from app.db.plain_statements import PlainConnection
from app.db.schema import one_of
from app.delivery.messages import dead_letters
from app.delivery.messages.claims import Claimed
from app.delivery.messages.dead_letters import NewDeadLetter
from app.delivery.messages.message_log import log_recorded
from app.delivery.messages.retry import SendResult
from app.delivery.messages.states import NOTIFICATION_TRANSITIONS, RECORDED_FROM
from app.delivery.messages.traits import TRAITS, traits_of
from app.delivery.messages.values import (
    Device,
    Follower,
    NotificationChange,
    NotificationStatus,
    NotificationType,
    Outcome,
    Priority,
    follow,
)
from app.foundation.state_machine import check_transition
from app.foundation.storable import made_storable

NO_DEVICE = "NO_DEVICE"
"""The person has no phone with the app."""
BREAKER_OPEN = "BREAKER_OPEN"
"""The breaker of the provider held the message back, so it was not tried."""


@dataclass(frozen=True)
class Try:
    """The result for one address in an attempt. A push has one for each device of the person."""

    device: Device | None
    result: SendResult
    took_s: float = 0.0
    """From the moment when the channel got its batch until the answer."""


@dataclass(frozen=True)
class Verdict:
    """The status that a notification gets after an attempt."""

    status: NotificationStatus
    due_at: datetime | None = None
    error_code: str | None = None
    failed: bool = False
    """True if the attempt failed, so that it uses up a retry."""
    retryable: bool = False
    """True if the notification is given up although further attempts might have succeeded."""


@dataclass(frozen=True)
class Report:
    claimed: Claimed
    verdict: Verdict
    tries: list[Try] = field(default_factory=list[Try])


@dataclass(frozen=True)
class Recorded:
    status: NotificationStatus
    error_code: str | None
    latency_s: float
    priority: Priority
    notification_type: NotificationType
    is_redriven: bool
    """An earlier attempt had been given up, and somebody has redriven it."""


# `attempts` is the fencing token: if a worker has lost its lease, the row has a higher number and is not changed.
# A notification expires if its retry would come after `expires_at`. A withdrawal may have changed that since the claim.
# It also expires instead of being given up after `expires_at`, because its dead letter could not be redriven.
# The state is compared as an expression, so that the planner cannot choose the index of the queue for it: most of the
# time it holds few rows, but behind a long queue each record would read all of it.
_RECORD = """
    WITH reported AS (
        {reported}
    ), tried AS (
        INSERT INTO notification_attempts
               (notification_id, attempt, device_id, outcome, error_code, provider_message_id)
        {tried}
    )
    UPDATE notifications n
       SET status = CASE WHEN {late} THEN 'EXPIRED' ELSE reported.status END,
           due_at = CASE WHEN NOT {late} THEN reported.due_at END,
           finished_at = CASE WHEN {late} OR reported.due_at IS NULL THEN clock_timestamp() END,
           error_code = reported.error_code,
           failures = n.failures + reported.failed
      FROM reported
     WHERE n.id = reported.id AND {from_state} AND n.attempts = reported.attempt
    RETURNING reported.place, n.status, n.finished_at IS NOT NULL AS ended, n.step_order, n.failures, n.expires_at,
              extract(epoch FROM clock_timestamp() - n.created_at)::float8 AS latency_s
    """
_LATE = """
    (reported.due_at >= n.expires_at OR reported.status = 'DEAD' AND n.expires_at <= clock_timestamp()) IS TRUE
"""
_FROM_STATE = one_of("n.status || ''", RECORDED_FROM)


def _statement(reported: str, tried: str) -> TextClause:
    return text(_RECORD.format(reported=reported, tried=tried, late=_LATE, from_state=_FROM_STATE))


# The first try of each report comes with it, because most have one, and reading a second list takes time.
RECORD_MANY = _statement(
    """SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row(
               place int, id uuid, attempt int, status text, due_at timestamptz, error_code text, failed int,
               device_id text, outcome text, try_error_code text, provider_message_id text)""",
    """SELECT id, attempt, device_id, outcome, try_error_code, provider_message_id
          FROM reported WHERE outcome IS NOT NULL
         UNION ALL
        SELECT * FROM json_to_recordset(CAST(:more_tries AS json)) AS row(
               id uuid, attempt int, device_id text, outcome text, try_error_code text, provider_message_id text)""",
)
# One notification with one address. It takes two thirds of the time.
RECORD_ONE = _statement(
    """SELECT 0 AS place, CAST(:id AS uuid) AS id, CAST(:attempt AS int) AS attempt, CAST(:status AS text) AS status,
              CAST(:due_at AS timestamptz) AS due_at, CAST(:error_code AS text) AS error_code,
              CAST(:failed AS int) AS failed""",
    """VALUES (CAST(:id AS uuid), CAST(:attempt AS int), :device_id, :outcome, :try_error_code,
               :provider_message_id)""",
)
# Deletes a device only if it still has the token that failed, because the phone may have registered a new one.
_FORGET_DEVICES = text(
    """
    DELETE FROM devices d USING json_to_recordset(CAST(:rows AS json)) AS gone(device_id text, token text)
     WHERE d.device_id = gone.device_id AND d.token = gone.token
    """
)


def record(conn: Connection, reports: Sequence[Report], followers: Sequence[Follower]) -> list[Recorded]:
    """Records every try, but changes the status only if the worker has not lost its lease.

    The order of the statements is the lock order: notifications, devices, dead letters, then the rows of the
    followers.
    """
    _check_transitions(reports)
    written = _write(conn, reports)
    _forget_devices(conn, reports)
    given_up = _write_dead_letters(conn, [(one, row) for one, row in written if row.status == NotificationStatus.DEAD])
    if followers:
        ended = {report.claimed.id for report, row in written if row.ended}
        follow(conn, followers, [_change(report, has_ended=report.claimed.id in ended) for report in reports])
    return [_note_recorded(report, row, given_up) for report, row in written]


def record_each(conn: PlainConnection, reports: Sequence[Report]) -> list[list[Recorded] | None]:
    """Records reports that fit one statement and have one try, each in a transaction of its own, so that none suffers
    from the error of another one. Returns for each what `record` returns for it alone, or None if it may not have been
    recorded. Needs autocommit."""
    _check_transitions(reports)
    answers = conn.execute_each(RECORD_ONE, [_row(report, 0) for report in reports])
    return [
        None if rows is None else [_note_recorded(report, row) for row in rows]
        for report, rows in zip(reports, answers, strict=True)
    ]


def _check_transitions(reports: Sequence[Report]) -> None:
    for status in {report.verdict.status for report in reports}:
        check_transition(NOTIFICATION_TRANSITIONS, NotificationStatus.SENDING, status)


def _note_recorded(report: Report, row: Any, given_up: Set[UUID] = frozenset()) -> Recorded:
    """What cannot have changed since the claim is not read again."""
    claimed, status, error_code = report.claimed, NotificationStatus(row.status), report.verdict.error_code
    log_recorded(claimed.id, status, claimed.attempt, error_code, has_dead_letter=claimed.id in given_up)
    notification = claimed.notification
    type_ = NotificationType(notification.notification_type)
    return Recorded(status, error_code, row.latency_s, notification.priority, type_, claimed.is_redriven)


def _write(conn: Connection, reports: Sequence[Report]) -> list[tuple[Report, Any]]:
    """The reports of those whose lease was not lost, each with the row of its notification."""
    rows = [_row(report, place) for place, report in enumerate(reports)]
    if len(reports) == 1 and len(reports[0].tries) == 1:
        return [(reports[0], row) for row in conn.execute(RECORD_ONE, rows[0])]
    more_tries = [_try_row(report.claimed, try_) for report in reports for try_ in report.tries[1:]]
    found: Any = conn.execute(RECORD_MANY, {"rows": json.dumps(rows), "more_tries": json.dumps(more_tries)})
    return [(reports[row.place], row) for row in found]


def fits_one_statement(report: Report, followers: Sequence[Follower]) -> bool:
    """True if one autocommitted statement is enough, because no other row has to change in the same transaction."""
    if report.verdict.status is NotificationStatus.DEAD and _needs_a_person(report):
        return False
    for try_ in report.tries:
        if try_.result.outcome is Outcome.RECIPIENT_GONE:
            return False
    # The statement decides whether the notification ends: it may expire instead of being tried again.
    change = _change(report, has_ended=True)
    return not any(follower.concerns(change) for follower in followers)


def _needs_a_person(report: Report) -> bool:
    """False for a notification that is given up without a dead letter, because nobody could do anything about it: the
    person has no phone with the app, or the message is only a hint for an app, which shows nothing."""
    notification = report.claimed.notification
    has_data = not notification.data.keys() <= {"notificationId"}
    is_hint = notification.is_data_only and has_data and traits_of(notification.notification_type).is_for_apps
    return report.verdict.error_code != NO_DEVICE and not is_hint


_IS_FOR_APPS = one_of("n.notification_type", {type_ for type_, traits in TRAITS.items() if traits.is_for_apps})
MAY_LACK_DEAD_LETTER = f"""
    (n.error_code IS NOT DISTINCT FROM '{NO_DEVICE}' OR {_IS_FOR_APPS} AND n.subject = '' AND n.body = '')
"""
"""The same in SQL, of a notification `n` that was given up. The data of a hint may be forgotten already."""


def _change(report: Report, *, has_ended: bool) -> NotificationChange:
    claimed, channel = report.claimed, report.claimed.recipient_channel
    return NotificationChange(
        claimed.id,
        claimed.action_id,
        claimed.notification.metadata,
        has_ended,
        channel_id=channel.channel_id if channel is not None else None,
        is_refused=any(try_.result.disables for try_ in report.tries),
    )


def _forget_devices(conn: Connection, reports: Sequence[Report]) -> None:
    gone = [
        {"device_id": try_.device.device_id, "token": try_.device.token}
        for report in reports
        for try_ in report.tries
        if try_.device is not None and try_.result.outcome is Outcome.RECIPIENT_GONE
    ]
    if gone:
        conn.execute(_FORGET_DEVICES, {"rows": json.dumps(gone)})


def _write_dead_letters(conn: Connection, dead: Sequence[tuple[Report, Any]]) -> set[UUID]:
    """Returns the ids of the notifications that got one."""
    needed = [(report, row) for report, row in dead if _needs_a_person(report)]
    if needed:
        dead_letters.write(conn, [_dead_letter(report, row) for report, row in needed])
    return {report.claimed.id for report, _ in needed}


def _dead_letter(report: Report, row: Any) -> NewDeadLetter:
    claimed, verdict = report.claimed, report.verdict
    return NewDeadLetter(
        notification_id=claimed.id,
        action_id=claimed.action_id,
        step_order=row.step_order,
        channel_type=NotificationType(claimed.notification.notification_type).channel_type,
        error_code=verdict.error_code or "UNKNOWN",
        retryable=verdict.retryable,
        retry_count=max(row.failures - 1, 0),
        expires_at=row.expires_at,
    )


def _row(report: Report, place: int) -> dict[str, Any]:
    """The verdict and the first try."""
    claimed, verdict = report.claimed, report.verdict
    first = _try_row(claimed, report.tries[0]) if report.tries else {"id": claimed.id.hex, "attempt": claimed.attempt}
    return {
        **first,
        "place": place,
        "status": verdict.status,
        "due_at": verdict.due_at.isoformat() if verdict.due_at else None,
        "error_code": verdict.error_code,
        "failed": int(verdict.failed),
    }


def _try_row(claimed: Claimed, try_: Try) -> dict[str, Any]:
    result = try_.result
    return {
        "id": claimed.id.hex,
        "attempt": claimed.attempt,
        "device_id": try_.device.device_id if try_.device else None,
        "outcome": result.outcome,
        "try_error_code": result.error_code,
        # If PostgreSQL refused this text, nothing would be recorded, and the notification would be sent again.
        "provider_message_id": result.provider_message_id and made_storable(result.provider_message_id),
    }
