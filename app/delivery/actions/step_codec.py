"""Encodes and decodes the steps in the row of an action. Default values are left out, because there are many rows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.delivery.actions.states import StepState
from app.delivery.actions.steps import StepRun, Target
from app.delivery.plans.models import Audience, OnFailure


def encode(steps: Sequence[StepRun]) -> list[dict[str, Any]]:
    return [_step(step) for step in steps]


def decode(document: Sequence[Mapping[str, Any]]) -> tuple[StepRun, ...]:
    return tuple(_read_step(step) for step in document)


def _step(step: StepRun) -> dict[str, Any]:
    given = {
        "step_order": step.order,
        "channel_type": step.channel_type,
        "audience": step.audience.value,
        "on_failure": step.on_failure.value,
        "state": step.state.value,
    }
    return given | _non_default(
        template_key=step.template_key,
        fallback=list(step.fallback),
        within_s=step.within_s,
        may_arrive_twice=step.may_arrive_twice,
        targets=[_target(target) for target in step.targets],
        tried=step.tried,
        asked_at=step.asked_at.isoformat() if step.asked_at else None,
        error_code=step.error_code,
    )


def _target(target: Target) -> dict[str, Any]:
    given = {"channel_type": target.channel_type, "recipient": target.recipient, "locale": target.locale}
    return given | _non_default(
        user_id=target.user_id,
        channel_id=target.channel_id,
        address_kind=target.address_kind,
        notification_id=str(target.notification_id) if target.notification_id else None,
        withdrawn=target.withdrawn,
    )


def _non_default(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _read_step(step: Mapping[str, Any]) -> StepRun:
    return StepRun(
        order=step["step_order"],
        channel_type=step["channel_type"],
        audience=Audience(step["audience"]),
        template_key=step.get("template_key"),
        on_failure=OnFailure(step["on_failure"]),
        fallback=tuple(step.get("fallback") or ()),
        within_s=step.get("within_s"),
        may_arrive_twice=step.get("may_arrive_twice", False),
        # A step that was read from a plan has no state yet.
        state=StepState(step.get("state", StepState.WAITING)),
        targets=tuple(_read_target(target) for target in step.get("targets", ())),
        tried=step.get("tried", 0),
        asked_at=datetime.fromisoformat(step["asked_at"]) if "asked_at" in step else None,
        error_code=step.get("error_code"),
    )


def _read_target(target: Mapping[str, Any]) -> Target:
    return Target(
        channel_type=target["channel_type"],
        recipient=target["recipient"],
        locale=target["locale"],
        user_id=target.get("user_id"),
        channel_id=target.get("channel_id"),
        address_kind=target.get("address_kind"),
        notification_id=UUID(target["notification_id"]) if "notification_id" in target else None,
        withdrawn=target.get("withdrawn", False),
    )
