"""The rows of a transition, in the JSON form that its statements read."""

from datetime import datetime
from typing import Any

from app.delivery.actions.context import Action
from app.delivery.actions.run import Decision
from app.delivery.actions.step_codec import encode
from app.delivery.actions.steps import GiveUp, Send
from app.delivery.messages.dead_letters import NewDeadLetter
from app.delivery.messages.values import NotificationType


def changed_action(action: Action, decision: Decision) -> dict[str, Any]:
    """The columns that every transition writes."""
    return {
        "id": str(action.id),
        "status": decision.run.status.value,
        "steps": encode(decision.run.steps),
        "due_at": _iso(decision.due_at),
    }


def new_action(action: Action, decision: Decision) -> dict[str, Any]:
    return changed_action(action, decision) | {
        "evaluation_key": action.evaluation_key,
        "action_plan_id": action.plan_id,
        "origin": action.origin.value,
        "person_id": action.person_id,
        "task_id": str(action.task_id) if action.task_id else None,
        "context": action.context,
        "variables": action.variables,
        "data": action.data,
        "priority": action.priority.value,
        "expires_at": _iso(action.run.expires_at),
    }


def notification(action: Action, send: Send) -> dict[str, Any]:
    target, draft, id_ = send.target, send.draft, str(send.target.notification_id)
    metadata: dict[str, Any] = {"data": {**action.data, "notificationId": id_}}
    if target.address_kind is not None:
        metadata["addressKind"] = target.address_kind
    return {
        "id": id_,
        "notification_type": NotificationType(target.channel_type.upper()).value,
        "recipient": draft.recipient,
        "recipient_user_id": target.user_id,
        "subject": draft.words.subject,
        "body": draft.words.body,
        "priority": action.priority.value,
        "metadata": metadata,
        "task_id": str(action.task_id) if action.task_id else None,
        "expires_at": _iso(action.run.expires_at),
        "action_id": str(action.id),
        "step_order": send.step.order,
        "channel_id": target.channel_id,
    }


def dead_letter(action: Action, given_up: GiveUp) -> NewDeadLetter:
    return NewDeadLetter(
        channel_type=given_up.channel_type,
        error_code=given_up.error_code,
        retryable=False,
        action_id=action.id,
        step_order=given_up.step.order,
    )


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None
