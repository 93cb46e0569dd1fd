"""Views of actions for coordinators: the request, the state of each step, and its notifications."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, text

from app.delivery.actions.models import Origin
from app.delivery.actions.states import ActionStatus, StepState
from app.delivery.actions.step_codec import decode
from app.delivery.actions.steps import StepRun
from app.delivery.messages.values import NotificationStatus, NotificationType, Priority
from app.delivery.messages.views import shown_recipient
from app.foundation.errors import NotFound
from app.foundation.pages import Page, page_of, parse_uuid
from app.users.contract import StaffScope


@dataclass(frozen=True)
class ActionNotificationView:
    id: UUID
    notification_type: NotificationType
    recipient: str = field(repr=False)
    recipient_user_id: int | None
    status: NotificationStatus
    created_at: datetime
    finished_at: datetime | None
    error_code: str | None


@dataclass(frozen=True)
class StepView:
    step_order: int
    channel_type: str
    state: StepState
    error_code: str | None
    asked_at: datetime | None
    notifications: list[ActionNotificationView]


@dataclass(frozen=True)
class ActionView:
    id: UUID
    status: ActionStatus
    evaluation_key: str | None
    action_plan_id: int
    plan_key: str | None
    origin: Origin
    person_id: int | None
    task_id: UUID | None
    device_id: str | None
    stream_id: int | str | None
    group_id: int | None
    rule_id: int | None
    trace_id: str | None
    variables: dict[str, Any] = field(repr=False)
    priority: Priority
    created_at: datetime
    expires_at: datetime | None
    finished_at: datetime | None
    steps: list[StepView] = field(default_factory=list[StepView])
    """Empty in a list of actions."""


_SHOW = "SELECT a.*, p.key AS plan_key FROM actions a JOIN action_plans p ON p.id = a.action_plan_id"
_GET = f"{_SHOW} WHERE a.id = :id AND {{seen}}"
_LIST = f"""
    {_SHOW}
     WHERE {{seen}} AND (CAST(:status AS text) IS NULL OR a.status = :status)
       AND (CAST(:action_plan_id AS bigint) IS NULL OR a.action_plan_id = :action_plan_id)
       AND (CAST(:cursor AS uuid) IS NULL OR a.id < :cursor)
     ORDER BY a.id DESC LIMIT :limit
    """
# A step that began anew has new notifications. Its earlier notifications are found by their dead letters.
_NOTIFICATIONS = text(
    """
    SELECT id, notification_type, recipient, recipient_user_id, status, created_at, finished_at, error_code, step_order
      FROM notifications
     WHERE id = ANY(:ids) OR id IN (SELECT notification_id FROM dead_letters WHERE action_id = :action_id)
     ORDER BY id
    """
)


def list_actions(
    conn: Connection,
    scope: StaffScope,
    *,
    status: ActionStatus | None = None,
    action_plan_id: int | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[ActionView]:
    """Newest first."""
    values = {
        "status": status,
        "action_plan_id": action_plan_id,
        "cursor": None if cursor is None else parse_uuid(cursor),
        "limit": limit + 1,
    }
    query = _LIST.format(seen=scope.sees("a.institution_id"))
    rows = conn.execute(text(query), values).mappings().all()
    return page_of(rows, limit, lambda row: _view(row, []))


def get_action(conn: Connection, scope: StaffScope, id_: UUID) -> ActionView:
    query = _GET.format(seen=scope.sees("a.institution_id"))
    row = conn.execute(text(query), {"id": id_}).mappings().one_or_none()
    if row is None:
        raise NotFound("There is no such action.")
    steps = decode(row["steps"])
    notification_ids = [notification_id for step in steps for notification_id in step.notification_ids]
    notifications = _notifications(conn, id_, notification_ids)
    return _view(row, [_step(step, notifications.get(step.order, [])) for step in steps])


def _notifications(conn: Connection, action_id: UUID, ids: list[UUID]) -> dict[int, list[ActionNotificationView]]:
    found: dict[int, list[ActionNotificationView]] = {}
    for row in conn.execute(_NOTIFICATIONS, {"ids": ids, "action_id": action_id}):
        view = ActionNotificationView(
            row.id,
            NotificationType(row.notification_type),
            shown_recipient(row.notification_type, row.recipient, row.recipient_user_id),
            row.recipient_user_id,
            NotificationStatus(row.status),
            row.created_at,
            row.finished_at,
            row.error_code,
        )
        found.setdefault(row.step_order, []).append(view)
    return found


def _step(step: StepRun, notifications: list[ActionNotificationView]) -> StepView:
    return StepView(step.order, step.channel_type, step.state, step.error_code, step.asked_at, notifications)


def _view(row: RowMapping, steps: list[StepView]) -> ActionView:
    context = row["context"]
    return ActionView(
        id=row["id"],
        status=ActionStatus(row["status"]),
        evaluation_key=row["evaluation_key"],
        action_plan_id=row["action_plan_id"],
        plan_key=row["plan_key"],
        origin=Origin(row["origin"]),
        person_id=row["person_id"],
        task_id=row["task_id"],
        device_id=context.get("device_id"),
        stream_id=context.get("stream_id"),
        group_id=context.get("group_id"),
        rule_id=context.get("rule_id"),
        trace_id=context.get("trace_id"),
        variables=row["variables"],
        priority=Priority(row["priority"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        finished_at=row["finished_at"],
        steps=steps,
    )
