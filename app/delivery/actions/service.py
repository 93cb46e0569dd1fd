"""Asking for plans, calling them back, and having them tried again. Everything happens in the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from app.delivery.actions import effects, queries
from app.delivery.actions.context import Action, ActionContext, Known
from app.delivery.actions.effects import ActionTransition
from app.delivery.actions.errors import EvaluationKeyReused, PlanNotFound
from app.delivery.actions.models import ActionStatus, Origin
from app.delivery.actions.queries import ACTION_COLUMNS, PlanToRun
from app.delivery.actions.requests import NewAction, Requested
from app.delivery.actions.run import Advanced, advance
from app.delivery.actions.run import cancel as cancel_run
from app.delivery.actions.run import reopen as reopen_run
from app.delivery.actions.steps import Run, StepState
from app.delivery.actions.targets import Directory
from app.foundation.errors import InvalidValue
from app.foundation.ids import uuid7


def request_actions(conn: Connection, new: Sequence[NewAction]) -> list[Requested]:
    """The first step of each is taken at once, so that its message is there when the caller commits. An evaluation
    key that was used before brings the action of that time. The same few statements for any number of them."""
    if not new:
        return []
    plans = _plans(conn, new)
    actions = [_action(one, plans[one.plan]) for one in new]
    templates = {key: words for plan in plans.values() for key, words in plan.templates.items()}
    known = queries.known(conn, actions, templates)
    _check_people(actions, known)
    moves = [_begin(one, plans[asked.plan], known) for one, asked in zip(actions, new, strict=True)]
    inserted = effects.insert(conn, moves)
    before = _asked_before(conn, [one for one in actions if one.id not in inserted])
    return [
        Requested(one.id, True) if one.id in inserted else Requested(before[one.evaluation_key or ""], False)
        for one in actions
    ]


def _plans(conn: Connection, new: Sequence[NewAction]) -> Mapping[int | str, PlanToRun]:
    """What a feature of ours tells goes on where an operator has switched the telling off."""
    plans = queries.plans(conn, {one.plan for one in new})
    for one in new:
        plan = plans.get(one.plan)
        if plan is None or not (plan.is_on or one.origin is Origin.INTERNAL):
            raise PlanNotFound("There is no such plan, or it is switched off.")
    return plans


def _action(new: NewAction, plan: PlanToRun) -> Action:
    return Action(
        id=uuid7(),
        plan_id=plan.id,
        run=Run(plan.steps, new.expires_at),
        origin=new.origin,
        evaluation_key=new.evaluation_key,
        person_id=new.person_id,
        task_id=new.task_id,
        context=new.context,
        variables=new.variables,
        data=new.data,
        priority=new.priority,
        created_at=plan.read_at,
    )


def _check_people(actions: Sequence[Action], known: Known) -> None:
    if any(
        one.person_id is not None and one.run.steps and one.person_id not in known.directory.people for one in actions
    ):
        raise InvalidValue("personId", "is not the id of a user")


def _begin(action: Action, plan: PlanToRun, known: Known) -> ActionTransition:
    desk = ActionContext(action, known, None)
    if not plan.is_on:
        skipped = tuple(replace(step, state=StepState.SKIPPED) for step in plan.steps)
        run = replace(action.run, steps=skipped, status=ActionStatus.DONE)
        return ActionTransition(desk, Advanced(run), plan.read_at)
    return ActionTransition(desk, advance(action.run, desk, {}, plan.read_at), plan.read_at)


_FIND_KEYS = text("SELECT evaluation_key, id, action_plan_id FROM actions WHERE evaluation_key = ANY(:keys)")


def _asked_before(conn: Connection, again: Sequence[Action]) -> dict[str, UUID]:
    if not again:
        return {}
    rows = conn.execute(_FIND_KEYS, {"keys": [one.evaluation_key for one in again]}).all()
    plans = {row.evaluation_key: row.action_plan_id for row in rows}
    if any(plans[one.evaluation_key] != one.plan_id for one in again):
        raise EvaluationKeyReused("This evaluation key was used for another plan.")
    return {row.evaluation_key: row.id for row in rows}


# An action's row may be waited for: whoever holds one waits for nobody. A message's may not.
_HOLD_MEANT = text(
    f"""
    SELECT {ACTION_COLUMNS}, clock_timestamp() AS read_at FROM actions
     WHERE task_id = :task_id AND person_id = ANY(:person_ids) AND status = 'RUNNING'
       AND data ->> 'type' = :message_type
     ORDER BY id FOR NO KEY UPDATE
    """
)


def cancel_actions(conn: Connection, task_id: UUID, person_ids: Sequence[int], message_type: str) -> int:
    """Calls back what has not left yet, and what would have followed it; says how many actions that was."""
    values = {"task_id": task_id, "person_ids": list(person_ids), "message_type": message_type}
    moves = [_cancel(queries.action(row), row.read_at) for row in conn.execute(_HOLD_MEANT, values)]
    effects.carry_out(conn, moves)
    effects.update(conn, moves)
    return len(moves)


def _cancel(action: Action, now: datetime) -> ActionTransition:
    run, withdrawals = cancel_run(action.run)
    return _move(action, Advanced(run, tuple(withdrawals)), now)


_HOLD_ONE = text(f"SELECT {ACTION_COLUMNS}, clock_timestamp() AS read_at FROM actions WHERE id = :id FOR NO KEY UPDATE")


def reopen(conn: Connection, action_id: UUID, step_order: int) -> bool:
    """A step that failed runs again, and what was cancelled because of it follows. It waits for a message of its own
    that is live again, and otherwise begins anew. False where the action has no step to be tried again."""
    row = conn.execute(_HOLD_ONE, {"id": action_id}).one_or_none()
    if row is None:
        return False
    action = queries.action(row)
    asked = [id_ for step in action.run.steps if step.order == step_order for id_ in step.messages]
    live = [id_ for id_, seen in queries.messages(conn, asked).items() if seen.is_live]
    run = reopen_run(action.run, step_order, live)
    if run is None:
        return False
    effects.update(conn, [_move(action, Advanced(run, due_at=row.read_at), row.read_at)])
    effects.wake(conn)
    return True


def _move(action: Action, advanced: Advanced, now: datetime) -> ActionTransition:
    return ActionTransition(ActionContext(action, Known(Directory(), {}), None), advanced, now)
