"""Helpers for tests of delivery: add people, devices and notifications, and read the rows."""

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.db.database import Database
from app.delivery.channels.base import OutgoingMessage
from app.delivery.messages.claims import Claimed
from app.delivery.messages.values import Device, Notification, NotificationType, Priority, RecipientChannel
from app.foundation.clock import FakeClock
from app.foundation.ids import uuid7
from app.users.models import AddressKind
from tests.support.notifications import NewNotification, enqueue

PHONE = Device("phone", "token-of-the-phone", AddressKind.TOKEN)
TABLET = Device("tablet", "fid-of-the-tablet", AddressKind.FID)


def notification(**changes: Any) -> Notification:
    id_ = changes.get("id", uuid7())
    data = {"type": "offer", "taskId": str(uuid7()), "deadline": "2026-03-12T09:10:00Z", "notificationId": str(id_)}
    values: dict[str, Any] = {
        "id": id_,
        "notification_type": NotificationType.PUSH,
        "recipient": "user:7",
        "subject": "Yeni talep",
        "body": "Yakınında yeni bir talep var!",
        "priority": Priority.NORMAL,
        "created_at": datetime(2026, 3, 12, 9, 0, tzinfo=UTC),
        "metadata": {"data": changes.pop("data", data)},
        "recipient_user_id": 7,
    }
    return Notification(**(values | changes))


def outgoing(
    device: Device | None = PHONE, *, recipient_channel: RecipientChannel | None = None, **changes: Any
) -> OutgoingMessage:
    return OutgoingMessage(notification(**changes), device, recipient_channel)


def claimed(clock: FakeClock, **changes: Any) -> Claimed:
    own = {field.name for field in fields(Claimed)}
    values: dict[str, Any] = {
        "notification": notification(**{name: value for name, value in changes.items() if name not in own}),
        "attempt": 1,
        "failures": 0,
        "lease_until": clock.now() + timedelta(seconds=30),
        "devices": (PHONE,),
    }
    return Claimed(**(values | {name: value for name, value in changes.items() if name in own}))


def add_user(db: Database, *device_ids: str, kind: AddressKind = AddressKind.TOKEN) -> int:
    with db.transaction() as conn:
        user_id = conn.execute(text("INSERT INTO users (role, name) VALUES ('STUDENT', 'Ali Can') RETURNING id"))
        id_ = user_id.scalar_one()
        for device_id in device_ids:
            conn.execute(
                text(
                    "INSERT INTO devices (device_id, user_id, token, platform, address_kind)"
                    " VALUES (:device_id, :user_id, :token, 'ANDROID', :kind)"
                ),
                {"device_id": device_id, "user_id": id_, "token": f"token-{device_id}", "kind": kind.value},
            )
    return id_


def post(db: Database, user_ids: Sequence[int], **changes: Any) -> list[UUID]:
    values: dict[str, Any] = {"subject": "Yeni talep", "body": "Kabul eder misin?", "data": {"type": "offer"}}
    new = [NewNotification(recipient_user_id=user_id, **(values | changes)) for user_id in user_ids]
    with db.transaction() as conn:
        return enqueue(conn, new)


def row(db: Database, id_: UUID) -> Any:
    with db.transaction() as conn:
        return conn.execute(text("SELECT * FROM notifications WHERE id = :id"), {"id": id_}).one()


def statuses(db: Database) -> dict[str, int]:
    with db.transaction() as conn:
        rows = conn.execute(text("SELECT status, count(*) FROM notifications GROUP BY status"))
        return {one.status: one.count for one in rows}


def attempts(db: Database, id_: UUID) -> list[tuple[int, str | None, str, str | None]]:
    with db.transaction() as conn:
        rows = conn.execute(
            text(
                "SELECT attempt, device_id, outcome, error_code FROM notification_attempts"
                " WHERE notification_id = :id ORDER BY id"
            ),
            {"id": id_},
        )
        return [tuple(one) for one in rows]


def shown(db: Database) -> list[Any]:
    with db.transaction() as conn:
        return list(conn.execute(text("SELECT * FROM recorded_pushes ORDER BY id")))


def make_due(db: Database, id_: UUID) -> None:
    """As if the time until the next attempt had passed."""
    change(db, id_, "due_at = clock_timestamp()")


def change(db: Database, id_: UUID, assignment: str, **values: Any) -> None:
    with db.transaction() as conn:
        conn.execute(text(f"UPDATE notifications SET {assignment} WHERE id = :id"), {"id": id_, **values})


def everything_stored(db: Database) -> str:
    """All rows that delivery keeps, as one text that can be searched for secrets."""
    with db.transaction() as conn:
        tables = ("notifications", "notification_attempts", "recorded_pushes")
        return json.dumps(
            [[list(one) for one in conn.execute(text(f"SELECT * FROM {name}"))] for name in tables], default=str
        )
