"""The events about a transition that other services read."""

from datetime import datetime

from app.db.outbox import Event
from app.delivery.actions import result_format
from app.delivery.actions.context import Action
from app.delivery.actions.models import Origin
from app.delivery.actions.result_format import StepResult
from app.delivery.actions.steps import Effect, Executed, Failed, HandOver, StepRun
from app.delivery.messages.error_texts import explain


def result_event(action: Action, effect: Effect, at: datetime) -> Event | None:
    """The results of internal actions are not published, because no service waits for them. A handover is published for
    every action, because another service has to carry out the step."""
    has_reader = action.origin is not Origin.INTERNAL
    match effect:
        case HandOver():
            return _handover(action, effect, at)
        case Executed() if has_reader:
            return _executed(action, effect, at)
        case Failed() if has_reader:
            return _failed(action, effect, at)
        case _:
            return None


def _handover(action: Action, effect: HandOver, at: datetime) -> Event:
    return result_format.handover(
        _result(action, effect.step, effect.step.channel_type),
        produced_at=at,
        process_ms=_process_ms(effect.step, at),
        evaluation_key=action.evaluation_key,
        variables=action.variables,
        expires_at=action.run.expires_at,
    )


def _executed(action: Action, effect: Executed, at: datetime) -> Event:
    return result_format.executed(
        _result(action, effect.step, effect.target.channel_type),
        produced_at=at,
        process_ms=_process_ms(effect.step, at),
        provider_message_id=effect.provider_message_id,
    )


def _failed(action: Action, effect: Failed, at: datetime) -> Event:
    step, notification = effect.step, effect.notification
    return result_format.failed(
        _result(action, step, step.targets[step.tried - 1].channel_type if step.tried else step.channel_type),
        produced_at=at,
        process_ms=_process_ms(step, at),
        error_code=effect.error_code,
        error_message=explain(effect.error_code),
        retryable=notification is not None and notification.retryable,
        failed_at=at,
    )


def _result(action: Action, step: StepRun, channel_type: str) -> StepResult:
    return StepResult(action.plan_id, step.order, channel_type, action.context)


def _process_ms(step: StepRun, at: datetime) -> int:
    """The time since the newest notification of the step was written."""
    began = step.asked_at or at
    return max(0, round((at - began).total_seconds() * 1000))
