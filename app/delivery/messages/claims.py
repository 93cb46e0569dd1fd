"""Claims notifications from the queue, which is the table `notifications`, and puts them back. SQL only; the caller
owns the transaction."""

import json
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, TextClause, text

from app.db.schema import one_of
from app.db.wake import WAKE_CHANNEL
from app.delivery.messages.message_log import log_expired
from app.delivery.messages.states import CLAIMABLE, PUT_BACK_FROM
from app.delivery.messages.values import (
    URGENT_FIRST,
    Device,
    Follower,
    Notification,
    NotificationChange,
    NotificationType,
    Outcome,
    Priority,
    RecipientChannel,
    follow,
)
from app.users.models import AddressKind

_PUSH = NotificationType.PUSH


@dataclass(frozen=True)
class Claimed:
    """A notification that one worker may send until `lease_until`."""

    notification: Notification
    attempt: int
    failures: int
    lease_until: datetime
    devices: tuple[Device, ...] = ()
    settled: dict[str | None, Outcome] = field(default_factory=dict[str | None, Outcome])
    """Devices that need no further try, because an earlier one reached them or was refused permanently."""
    recipient_channel: RecipientChannel | None = None
    is_retired: bool = False
    """The recipient's channel is disabled or retired, or their profile is retired."""
    is_redriven: bool = False
    """An earlier attempt had been given up, and somebody has redriven it."""
    action_id: UUID | None = None
    worker_id: int | None = None
    """The worker that has claimed it."""

    @property
    def id(self) -> UUID:
        return self.notification.id


@dataclass(frozen=True)
class Claim:
    taken: list[Claimed]
    expired: list[NotificationChange]
    """Notifications that it was too late to send, or whose recipients are not active any more. They have the status
    EXPIRED now."""

    @property
    def size(self) -> int:
        return len(self.taken) + len(self.expired)


@dataclass(frozen=True)
class Crowd:
    """Recipients with many messages in the memory of the worker, and the priorities of these messages."""

    recipients: Sequence[str] = ()
    priorities: Sequence[Priority] = ()

    def __bool__(self) -> bool:
        return bool(self.recipients)


NO_CROWD = Crowd()
LOOK_AHEAD = 10_000
"""A claim for others than the crowd reads at most so many rows of each priority, because a longer look takes longer
than 10 ms. Behind more messages of one recipient, the others wait for some of them."""

STARVED_AFTER_S = 30.0
STARVED_SHARE = 0.1
"""The share of a claim for the notifications that have waited longest, of any priority but URGENT. Without it, no other
notification would be sent during a flood of urgent ones."""

# In the index each priority is a range, which is read from its oldest due row until there are enough rows.
# The search uses `statement_timestamp()` instead of `clock_timestamp()`: a stable function can bound an index scan.
# A user who was deactivated gets no more messages, neither by their id nor by a channel of their profile.
# The cancellation of an action skips notifications that another transaction has locked. They expire here instead.
_CLAIMABLE = one_of("n.status", CLAIMABLE)
_DUE = """
    SELECT n.id, n.due_at, n.action_id, n.recipient_user_id, n.channel_id FROM notifications n
     WHERE {claimable} AND n.notification_type = :notification_type
       AND n.priority = p.priority AND n.due_at <= statement_timestamp() - make_interval(secs => {age})
       {more}
     ORDER BY n.due_at LIMIT {limit} FOR UPDATE SKIP LOCKED
"""
_OTHERS = """
    others AS MATERIALIZED (
        SELECT n.id, n.due_at, n.action_id, n.recipient_user_id, n.channel_id FROM notifications n
         WHERE n.id = ANY(ARRAY(
               SELECT ahead.id
                 FROM unnest(CAST(:crowded AS text[])) AS p (priority) CROSS JOIN LATERAL (
                      SELECT n.id, n.recipient FROM notifications n
                       WHERE {claimable} AND n.notification_type = :notification_type
                         AND n.priority = p.priority AND n.due_at <= statement_timestamp()
                       ORDER BY n.due_at LIMIT :look_ahead) AS ahead
                WHERE ahead.recipient <> ALL(CAST(:crowd AS text[])) LIMIT :others))
           AND {claimable} AND n.due_at <= statement_timestamp()
           FOR UPDATE SKIP LOCKED
    ),
"""
_CLAIM = """
    WITH {others} starved AS MATERIALIZED (
        SELECT due.*
          FROM (VALUES ('LOW'), ('NORMAL'), ('HIGH')) AS p (priority) CROSS JOIN LATERAL ({starved}) AS due
         ORDER BY due.due_at LIMIT :starved
    ), first AS MATERIALIZED (
        {first}
    ), next AS MATERIALIZED (
        SELECT due.*
          FROM (VALUES ('URGENT'), ('HIGH'), ('NORMAL'), ('LOW')) AS p (priority) CROSS JOIN LATERAL ({due}) AS due
         LIMIT greatest(:limit - (SELECT count(*) FROM first), 0)
    ), taken AS MATERIALIZED (
        SELECT id, (SELECT a.status = 'CANCELLED' FROM actions a WHERE a.id = action_id) AS cancelled,
               ((SELECT NOT u.active FROM users u WHERE u.id = recipient_user_id) IS TRUE
                OR (SELECT NOT u.active FROM recipient_channels c JOIN recipient_profiles p ON p.id = c.profile_id
                      JOIN users u ON u.id = p.user_id WHERE c.id = channel_id) IS TRUE) AS inactive
          FROM (SELECT * FROM first UNION ALL SELECT * FROM next) AS found
    )
    UPDATE notifications n
       SET status = CASE WHEN {late} THEN 'EXPIRED' ELSE 'SENDING' END,
           due_at = CASE WHEN NOT {late} THEN clock_timestamp() + make_interval(secs => :lease_s) END,
           finished_at = CASE WHEN {late} THEN clock_timestamp() END,
           worker_id = :worker_id,
           error_code = CASE WHEN taken.inactive THEN 'RECIPIENT_INACTIVE'
                             WHEN {late} THEN coalesce(n.error_code, 'TOO_LATE') ELSE n.error_code END,
           attempts = n.attempts + CASE WHEN {late} THEN 0 ELSE 1 END
      FROM taken
     WHERE n.id = taken.id
    RETURNING n.id, n.notification_type, n.recipient, n.recipient_user_id, n.subject, n.body, n.priority, n.metadata,
              n.created_at, n.expires_at, n.channel_id, n.action_id, n.attempts, n.failures, n.fresh_from, n.due_at,
              n.status = 'EXPIRED' AS late
"""
_LATE = """
    (taken.cancelled OR taken.inactive OR n.expires_at <= statement_timestamp()
     OR n.created_at <= statement_timestamp() - make_interval(secs => :max_age_s)) IS TRUE
"""


def _statement(*, others: str, first: str, starved_only: str) -> TextClause:
    def due(limit: str, age: str, more: str) -> str:
        return _DUE.format(claimable=_CLAIMABLE, limit=limit, age=age, more=more)

    starved = due(":starved", ":starved_after_s", starved_only)
    oldest = due(":limit", "0", "AND n.id <> ALL(ARRAY(SELECT id FROM first))")
    return text(_CLAIM.format(others=others, starved=starved, first=first, due=oldest, late=_LATE))


# Two statements, because a claim beside a crowd takes a third longer to plan.
CLAIM = _statement(others="", first="SELECT * FROM starved", starved_only="")
CLAIM_BESIDE_CROWD = _statement(
    others=_OTHERS.format(claimable=_CLAIMABLE),
    first="SELECT * FROM others UNION ALL SELECT * FROM starved",
    starved_only="AND n.id <> ALL(ARRAY(SELECT id FROM others))",
)


def claim(
    conn: Connection,
    notification_type: NotificationType,
    limit: int,
    lease_s: float,
    *,
    followers: Sequence[Follower],
    worker_id: int | None = None,
    max_age_s: float = 86_400,
    most_devices: int = 10,
    crowd: Crowd = NO_CROWD,
    others: int = 0,
    chance: Callable[[], float] = random.random,
) -> Claim:
    """Claims up to `others` of those who are not in the crowd, then up to `limit` together with them, whose ever they
    are."""
    # The share of a small claim is less than one row, so the number is rounded at random, by its fraction.
    starved = int(limit * STARVED_SHARE + chance())
    values: dict[str, Any] = {
        "notification_type": notification_type.value,
        "limit": limit,
        "starved": starved,
        "starved_after_s": STARVED_AFTER_S,
        "lease_s": lease_s,
        "worker_id": worker_id,
        "max_age_s": max_age_s,
    }
    if crowd:
        others = min(others, limit - starved) if limit else others
        values |= {"crowd": list(crowd.recipients), "crowded": list(crowd.priorities), "others": others}
        values["look_ahead"] = LOOK_AHEAD
    rows = conn.execute(CLAIM_BESIDE_CROWD if crowd else CLAIM, values).all()
    expired = [NotificationChange(row.id, row.action_id) for row in rows if row.late]
    for change in expired:
        log_expired(change.id)
    follow(conn, followers, expired)
    taken = sorted(
        (row for row in rows if not row.late), key=lambda row: (URGENT_FIRST.index(row.priority), row.id.int)
    )
    if not taken:
        return Claim([], expired)
    user_ids = {row.recipient_user_id for row in taken}
    devices = _devices(conn, user_ids, most_devices) if notification_type is _PUSH else {}
    settled = _settled(conn, [row.id for row in taken if row.attempts > 1])
    channels = _recipient_channels(conn, {row.channel_id for row in taken if row.channel_id is not None})
    return Claim([_claimed(row, devices, settled, channels, worker_id) for row in taken], expired)


def _claimed(
    row: Any,
    devices: dict[int, list[Device]],
    settled: dict[UUID, dict[str | None, Outcome]],
    channels: dict[int, tuple[str, RecipientChannel]],
    worker_id: int | None,
) -> Claimed:
    notification = Notification(
        id=row.id,
        notification_type=row.notification_type,
        recipient=row.recipient,
        subject=row.subject,
        body=row.body,
        priority=Priority(row.priority),
        created_at=row.created_at,
        metadata=row.metadata,
        recipient_user_id=row.recipient_user_id,
        expires_at=row.expires_at,
    )
    target, recipient_channel = channels.get(row.channel_id, ("", None))
    if recipient_channel is not None and target != row.recipient:
        # The address was changed after the notification was written. The old address must not get the metadata of the
        # new one.
        recipient_channel = replace(recipient_channel, meta={})
    return Claimed(
        notification,
        attempt=row.attempts,
        failures=row.failures,
        lease_until=row.due_at,
        devices=_destinations(row, devices),
        settled=settled.get(row.id, {}),
        recipient_channel=recipient_channel,
        is_retired=row.channel_id is not None and recipient_channel is None,
        is_redriven=row.fresh_from > 0,
        action_id=row.action_id,
        worker_id=worker_id,
    )


def _destinations(row: Any, devices: dict[int, list[Device]]) -> tuple[Device, ...]:
    """All phones of the user, or the one phone whose token is the recipient."""
    if row.notification_type != _PUSH or row.recipient_user_id is not None:
        return tuple(devices.get(row.recipient_user_id, ()))
    kind = AddressKind(row.metadata.get("addressKind", AddressKind.TOKEN))
    return (Device("", row.recipient, kind),)


def _devices(conn: Connection, user_ids: Iterable[int | None], most: int) -> dict[int, list[Device]]:
    """The phones of each user that were registered last, at most so many."""
    rows = conn.execute(
        text(
            "SELECT user_id, device_id, token, address_kind FROM ("
            "SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY updated_at DESC) AS place"
            " FROM devices WHERE user_id = ANY(:user_ids)) AS newest"
            " WHERE place <= :most ORDER BY device_id"
        ),
        {"user_ids": [user_id for user_id in user_ids if user_id is not None], "most": most},
    )
    found: dict[int, list[Device]] = {}
    for row in rows:
        found.setdefault(row.user_id, []).append(Device(row.device_id, row.token, AddressKind(row.address_kind)))
    return found


def _recipient_channels(conn: Connection, channel_ids: Collection[int]) -> dict[int, tuple[str, RecipientChannel]]:
    """The usable channels by id, each with its current address. A channel need not be verified, because the
    verification code has to reach it."""
    if not channel_ids:
        return {}
    rows = conn.execute(
        text(
            "SELECT c.id, c.target, c.target_meta, c.secrets FROM recipient_channels c"
            " JOIN recipient_profiles p ON p.id = c.profile_id"
            " WHERE c.id = ANY(:ids) AND c.enabled AND c.retired_at IS NULL AND p.retired_at IS NULL"
        ),
        {"ids": list(channel_ids)},
    )
    return {row.id: (row.target, RecipientChannel(row.id, row.target_meta, tuple(row.secrets))) for row in rows}


def _settled(conn: Connection, ids: Sequence[UUID]) -> dict[UUID, dict[str | None, Outcome]]:
    """The devices that need no further try, with their outcomes. A device that was gone is left out, because it may be
    registered again. A refusal from before a redrive does not count."""
    if not ids:
        return {}
    rows = conn.execute(
        text(
            "SELECT a.notification_id, a.device_id, a.outcome FROM notification_attempts a"
            " JOIN notifications n ON n.id = a.notification_id"
            " WHERE a.notification_id = ANY(:ids)"
            " AND (a.outcome = 'SENT' OR a.outcome = 'PERMANENT' AND a.attempt > n.fresh_from) ORDER BY a.id"
        ),
        {"ids": list(ids)},
    )
    found: dict[UUID, dict[str | None, Outcome]] = {}
    for row in rows:
        found.setdefault(row.notification_id, {})[row.device_id] = Outcome(row.outcome)
    return found


_PUT_BACK = text(
    f"""
    WITH returned AS (
        SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row(id uuid, attempt int)
    ), released AS (
        UPDATE notifications n
           SET status = CASE WHEN n.failures > 0 THEN 'RETRYING' ELSE 'ACCEPTED' END, due_at = clock_timestamp()
          FROM returned
         WHERE n.id = returned.id AND {one_of("n.status", PUT_BACK_FROM)} AND n.attempts = returned.attempt
    )
    SELECT pg_notify(:channel, '')
    """
)


def put_back(conn: Connection, claimed: Sequence[Claimed]) -> None:
    """Ends the leases of notifications that this worker has not begun to send, so that others can claim them now."""
    rows = [{"id": str(item.id), "attempt": item.attempt} for item in claimed]
    conn.execute(_PUT_BACK, {"rows": json.dumps(rows), "channel": WAKE_CHANNEL})
