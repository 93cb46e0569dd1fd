"""The queue that the table `notifications` is: claim, record, put back. SQL only; who calls it owns the transaction."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.delivery.channels.base import Device
from app.delivery.models import NotificationStatus, NotificationType, Outcome, Priority
from app.delivery.retry import Result
from app.delivery.service import WAKE_CHANNEL
from app.delivery.states import check_step
from app.users.models import AddressKind

URGENT_FIRST = (Priority.URGENT, Priority.HIGH, Priority.NORMAL, Priority.LOW)


@dataclass(frozen=True)
class Claimed:
    """A notification in the hands of one worker until `lease_until`."""

    id: UUID
    user_id: int
    subject: str
    body: str
    data: dict[str, str]
    expires_at: datetime | None
    attempt: int
    failures: int
    lease_until: datetime
    devices: tuple[Device, ...] = ()
    settled: dict[str | None, Outcome] = field(default_factory=dict[str | None, Outcome])
    """Devices that earlier attempts are done with, for good or ill."""


@dataclass(frozen=True)
class Claim:
    taken: list[Claimed]
    expired: int
    """Found too late to be sent."""

    @property
    def size(self) -> int:
        return len(self.taken) + self.expired


# Each priority is a range of its own in the index, read from its oldest due row and only as far as rows are still
# wanted. `statement_timestamp()` rather than `clock_timestamp()` in the search: being stable, it bounds the scan.
CLAIM = text(
    """
    WITH next AS MATERIALIZED (
        SELECT due.id
          FROM (VALUES ('URGENT'), ('HIGH'), ('NORMAL'), ('LOW')) AS p (priority)
         CROSS JOIN LATERAL (
               SELECT n.id FROM notifications n
                WHERE n.status IN ('ACCEPTED', 'SENDING', 'RETRYING') AND n.notification_type = :notification_type
                  AND n.priority = p.priority AND n.due_at <= statement_timestamp()
                ORDER BY n.due_at LIMIT :limit
                  FOR UPDATE SKIP LOCKED) AS due
         LIMIT :limit
    )
    UPDATE notifications n
       SET status = CASE WHEN {late} THEN 'EXPIRED' ELSE 'SENDING' END,
           due_at = CASE WHEN NOT {late} THEN clock_timestamp() + make_interval(secs => :lease_s) END,
           finished_at = CASE WHEN {late} THEN clock_timestamp() END,
           error_code = CASE WHEN {late} THEN coalesce(n.error_code, 'TOO_LATE') ELSE n.error_code END,
           attempts = n.attempts + CASE WHEN {late} THEN 0 ELSE 1 END
      FROM next
     WHERE n.id = next.id
    RETURNING n.id, n.recipient_user_id, n.subject, n.body, n.metadata -> 'data' AS data, n.expires_at, n.attempts,
              n.failures, n.due_at, n.priority, n.status = 'EXPIRED' AS late
    """.format(late="(n.expires_at <= statement_timestamp()) IS TRUE")
)


def claim(conn: Connection, notification_type: NotificationType, limit: int, lease_s: float) -> Claim:
    values = {"notification_type": notification_type.value, "limit": limit, "lease_s": lease_s}
    rows = conn.execute(CLAIM, values).all()
    taken = sorted((row for row in rows if not row.late), key=lambda row: (URGENT_FIRST.index(row.priority), row.id))
    if not taken:
        return Claim([], len(rows))
    devices = _devices(conn, {row.recipient_user_id for row in taken})
    settled = _settled(conn, [row.id for row in taken if row.attempts > 1])
    return Claim([_claimed(row, devices, settled) for row in taken], len(rows) - len(taken))


def _claimed(row: Any, devices: dict[int, list[Device]], settled: dict[UUID, dict[str | None, Outcome]]) -> Claimed:
    return Claimed(
        id=row.id,
        user_id=row.recipient_user_id,
        subject=row.subject,
        body=row.body,
        data=row.data or {},
        expires_at=row.expires_at,
        attempt=row.attempts,
        failures=row.failures,
        lease_until=row.due_at,
        devices=tuple(devices.get(row.recipient_user_id, ())),
        settled=settled.get(row.id, {}),
    )


def _devices(conn: Connection, user_ids: Iterable[int]) -> dict[int, list[Device]]:
    rows = conn.execute(
        text(
            "SELECT user_id, device_id, token, address_kind FROM devices"
            " WHERE user_id = ANY(:user_ids) ORDER BY device_id"
        ),
        {"user_ids": list(user_ids)},
    )
    found: dict[int, list[Device]] = {}
    for row in rows:
        found.setdefault(row.user_id, []).append(Device(row.device_id, row.token, AddressKind(row.address_kind)))
    return found


def _settled(conn: Connection, ids: Sequence[UUID]) -> dict[UUID, dict[str | None, Outcome]]:
    """A device that was gone is not among them: if it is registered again, it is there again."""
    if not ids:
        return {}
    rows = conn.execute(
        text(
            "SELECT notification_id, device_id, outcome FROM notification_attempts"
            " WHERE notification_id = ANY(:ids) AND outcome IN ('SENT', 'PERMANENT') ORDER BY id"
        ),
        {"ids": list(ids)},
    )
    found: dict[UUID, dict[str | None, Outcome]] = {}
    for row in rows:
        found.setdefault(row.notification_id, {})[row.device_id] = Outcome(row.outcome)
    return found


@dataclass(frozen=True)
class Try:
    device: Device | None
    result: Result


@dataclass(frozen=True)
class Verdict:
    """What becomes of a notification after an attempt."""

    status: NotificationStatus
    due_at: datetime | None = None
    error_code: str | None = None
    failed: bool = False
    """Whether the attempt uses up a retry."""


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


# `attempts` is the fence: the row of a worker that lost its lease has moved on and is left alone. A retry beyond
# `expires_at`, which may have been moved to now since the claim, is none.
_RECORD = text(
    """
    WITH told AS (
        SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row(
               id uuid, attempt int, status text, due_at timestamptz, error_code text, failed int)
    )
    UPDATE notifications n
       SET status = CASE WHEN {late} THEN 'EXPIRED' ELSE told.status END,
           due_at = CASE WHEN NOT {late} THEN told.due_at END,
           finished_at = CASE WHEN {late} OR told.due_at IS NULL THEN clock_timestamp() END,
           error_code = told.error_code,
           failures = n.failures + told.failed
      FROM told
     WHERE n.id = told.id AND n.status = 'SENDING' AND n.attempts = told.attempt
    RETURNING n.status, n.error_code, extract(epoch FROM clock_timestamp() - n.created_at)::float8 AS latency_s
    """.format(late="(told.due_at >= n.expires_at) IS TRUE")
)
_ADD_TRIES = text(
    """
    INSERT INTO notification_attempts (notification_id, attempt, device_id, outcome, error_code, provider_message_id)
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row(
           notification_id uuid, attempt int, device_id text, outcome text, error_code text, provider_message_id text)
    """
)
# Only the token that failed: the phone may have registered a new one in the meantime.
_FORGET_DEVICES = text(
    """
    DELETE FROM devices d USING json_to_recordset(CAST(:rows AS json)) AS gone(device_id text, token text)
     WHERE d.device_id = gone.device_id AND d.token = gone.token
    """
)


def record(conn: Connection, reports: Sequence[Report]) -> list[Recorded]:
    """What was tried is kept whoever tried it; the notification moves on only for the worker that still holds it."""
    for report in reports:
        check_step(NotificationStatus.SENDING, report.verdict.status)
    recorded = conn.execute(_RECORD, {"rows": json.dumps([_verdict_row(report) for report in reports])})
    found = [Recorded(NotificationStatus(row.status), row.error_code, row.latency_s) for row in recorded]
    tries = [_try_row(report, one) for report in reports for one in report.tries]
    if tries:
        conn.execute(_ADD_TRIES, {"rows": json.dumps(tries)})
    gone = [
        {"device_id": one.device.device_id, "token": one.device.token}
        for report in reports
        for one in report.tries
        if one.device is not None and one.result.outcome is Outcome.RECIPIENT_GONE
    ]
    if gone:
        conn.execute(_FORGET_DEVICES, {"rows": json.dumps(gone)})
    return found


def _verdict_row(report: Report) -> dict[str, Any]:
    verdict = report.verdict
    return {
        "id": str(report.claimed.id),
        "attempt": report.claimed.attempt,
        "status": verdict.status,
        "due_at": verdict.due_at.isoformat() if verdict.due_at else None,
        "error_code": verdict.error_code,
        "failed": int(verdict.failed),
    }


def _try_row(report: Report, one: Try) -> dict[str, Any]:
    return {
        "notification_id": str(report.claimed.id),
        "attempt": report.claimed.attempt,
        "device_id": one.device.device_id if one.device else None,
        "outcome": one.result.outcome,
        "error_code": one.result.error_code,
        "provider_message_id": one.result.provider_message_id,
    }


_PUT_BACK = text(
    """
    WITH told AS (
        SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row(id uuid, attempt int)
    ), released AS (
        UPDATE notifications n
           SET status = CASE WHEN n.failures > 0 THEN 'RETRYING' ELSE 'ACCEPTED' END, due_at = clock_timestamp()
          FROM told
         WHERE n.id = told.id AND n.status = 'SENDING' AND n.attempts = told.attempt
    )
    SELECT pg_notify(:channel, '')
    """
)


def put_back(conn: Connection, claimed: Sequence[Claimed]) -> None:
    """For other workers to take at once: nothing of it was begun."""
    rows = [{"id": str(one.id), "attempt": one.attempt} for one in claimed]
    conn.execute(_PUT_BACK, {"rows": json.dumps(rows), "channel": WAKE_CHANNEL})
