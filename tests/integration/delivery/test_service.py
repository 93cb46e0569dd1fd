from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.messages.values import NotificationStatus as S
from app.delivery.messages.values import NotificationType, Outcome, Priority
from app.delivery.messages.views import get_notification, list_notifications
from app.foundation.errors import InvalidValue, NotFound
from app.foundation.ids import uuid7
from app.users.contract import EVERYTHING
from tests.support.delivery import add_user, change, post
from tests.support.notifications import NewNotification, enqueue

PUSH = NotificationType.PUSH


def test_stored_notification_can_be_read(db: Database) -> None:
    user_id, task_id = add_user(db), uuid7()
    deadline = datetime(2026, 3, 12, 9, 10, tzinfo=UTC)
    new = NewNotification(
        user_id,
        "Yeni talep",
        'Ayşe Teyze\'nin "yakınında"',
        {"type": "offer", "taskId": str(task_id)},
        task_id,
        Priority.URGENT,
        deadline,
        extra={"plan": "offer"},
    )
    with db.transaction() as conn:
        [id_] = enqueue(conn, [new])
        view = get_notification(conn, EVERYTHING, id_)
    assert id_.version == 7
    assert (view.subject, view.body, view.priority, view.status) == (new.subject, new.body, Priority.URGENT, S.ACCEPTED)
    assert (view.recipient, view.recipient_user_id, view.task_id) == (f"user:{user_id}", user_id, task_id)
    assert (view.expires_at, view.finished_at, view.attempts) == (deadline, None, [])
    assert view.metadata == {"plan": "offer", "data": {**new.data, "notificationId": str(id_)}}


def test_list_is_paginated_newest_first(db: Database) -> None:
    mine, other = add_user(db), add_user(db)
    ids = post(db, [mine] * 5)
    post(db, [other])
    seen: list[UUID] = []
    cursor: str | None = None
    with db.transaction() as conn:
        for expected in (2, 2, 1):
            page = list_notifications(conn, EVERYTHING, recipient_user_id=mine, cursor=cursor, limit=2)
            assert len(page.items) == expected
            seen += [one.id for one in page.items]
            cursor = page.next_cursor
    assert cursor is None
    assert seen == ids[::-1]


def test_list_is_filtered_by_status_and_type(db: Database) -> None:
    user_id = add_user(db)
    first, second = post(db, [user_id] * 2)
    change(db, first, "status = 'DEAD', due_at = NULL, finished_at = clock_timestamp(), error_code = 'NO_DEVICE'")
    with db.transaction() as conn:
        dead = list_notifications(conn, EVERYTHING, status=S.DEAD, notification_type=PUSH)
        waiting = list_notifications(conn, EVERYTHING, status=S.ACCEPTED)
    assert [(one.id, one.error_code) for one in dead.items] == [(first, "NO_DEVICE")]
    assert [one.id for one in waiting.items] == [second]


def test_invalid_cursor_is_refused(db: Database) -> None:
    with db.transaction() as conn, pytest.raises(InvalidValue) as refused:
        list_notifications(conn, EVERYTHING, cursor="somewhere")
    assert refused.value.field == "cursor"


def test_unknown_notification_is_not_found(db: Database) -> None:
    with db.transaction() as conn, pytest.raises(NotFound):
        get_notification(conn, EVERYTHING, uuid7())


def test_notification_shows_its_attempts(db: Database) -> None:
    [id_] = post(db, [add_user(db)])
    with db.transaction() as conn:
        conn.execute(
            text(
                "INSERT INTO notification_attempts (notification_id, attempt, device_id, outcome, error_code)"
                " VALUES (:id, 1, 'phone', 'TRANSIENT', 'UNAVAILABLE')"
            ),
            {"id": id_},
        )
        [attempt] = get_notification(conn, EVERYTHING, id_).attempts
    assert (attempt.attempt, attempt.device_id, attempt.outcome) == (1, "phone", Outcome.TRANSIENT)
    assert attempt.error_code == "UNAVAILABLE"
