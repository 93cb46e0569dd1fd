"""Requests, cancels and reopens actions, in the caller's transaction."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.delivery.actions import queries, run
from app.delivery.actions.context import Action, ActionContext
from app.delivery.actions.errors import EvaluationKeyReused, PlanNotFound
from app.delivery.actions.models import Origin
from app.delivery.actions.queries import ACTION_COLUMNS, PlansAndPeople, PlanToRun
from app.delivery.actions.requests import NewAction, Requested
from app.delivery.actions.steps import Run
from app.delivery.actions.targets import Directory
from app.delivery.actions.transitions import ActionTransition, write
from app.delivery.words.templates import BatchRenderer
from app.foundation.copies import changed
from app.foundation.errors import InvalidValue
from app.foundation.ids import uuid7

ReadPlans = Callable[[], PlansAndPeople]


def read_plan(conn: Connection, plan: str, *person_ids: int) -> ReadPlans:
    """For a request that is made later in this transaction: asks together with the next statement, which saves a round
    trip."""
    return queries.plans_and_people(conn, {plan}, person_ids=list(person_ids))


def read_plan_where(conn: Connection, plan: str, people: str, **values: Any) -> ReadPlans:
    """As `read_plan`, for people whose ids are not known yet. `people` is a condition on the user `u` in SQL."""
    return queries.plans_and_people(conn, {plan}, people, **values)


def request_actions(conn: Connection, new: Sequence[NewAction], read_plans: ReadPlans | None = None) -> list[Requested]:
    """Writes the actions and begins the first step of each, so that the caller's commit also commits its notification.

    For an evaluation key that was used before, the result is the earlier action. The number of statements does not
    depend on the number of actions.
    """
    if not new:
        return []
    read_plans = read_plans or queries.plans_and_people(
        conn, {request.plan for request in new}, person_ids=list(_people_in(new))
    )
    read = read_plans()
    plans = _usable_plans(new, read.plans)
    actions = [_action(request, plans[request.plan], read.read_at) for request in new]
    directory = queries.directory_of(conn, read.people, actions)
    _check_people(new, actions, directory)
    actions = [
        changed(action, institution_id=_institution(request, action, directory))
        for request, action in zip(new, actions, strict=True)
    ]
    renderer = BatchRenderer({key: words for plan in plans.values() for key, words in plan.templates.items()})
    inserted = write(
        conn,
        [
            _begin(ActionContext(action, directory, renderer, None), plans[request.plan], read.read_at)
            for action, request in zip(actions, new, strict=True)
        ],
    )
    earlier = _requested_earlier(conn, [action for action in actions if action.id not in inserted])
    return [
        Requested(action.id, True) if action.id in inserted else Requested(earlier[_key(action)], False)
        for action in actions
    ]


def _usable_plans(new: Sequence[NewAction], plans: Mapping[int | str, PlanToRun]) -> Mapping[int | str, PlanToRun]:
    """The plans of the requests. A plan that is switched off is an error, except for an internal action: its steps are
    skipped, so that the package that requests it goes on."""
    for request in new:
        plan = plans.get(request.plan)
        if plan is None or not (plan.is_on or request.origin is Origin.INTERNAL):
            raise PlanNotFound("There is no such plan, or it is switched off.")
    return plans


def _action(new: NewAction, plan: PlanToRun, now: datetime) -> Action:
    return Action(
        id=uuid7(),
        plan_id=plan.id,
        run=Run(plan.steps, new.expires_at),
        origin=new.origin,
        evaluation_key=new.evaluation_key,
        key_owner=new.key_owner,
        person_id=new.person_id,
        task_id=new.task_id,
        context=new.context,
        variables=new.variables,
        data=new.data,
        priority=new.priority,
        created_at=now,
    )


def _people_in(new: Sequence[NewAction]) -> set[int]:
    """The recipients, and the elders whose institutions count."""
    return {id_ for request in new for id_ in (request.person_id, request.elder_id) if id_ is not None}


def _check_people(new: Sequence[NewAction], actions: Sequence[Action], directory: Directory) -> None:
    """A person whom the scope of the request does not reach is refused like one who does not exist."""
    for request, action in zip(new, actions, strict=True):
        if action.person_id is not None and (action.run.steps or not request.scope.is_everything):
            person = directory.people.get(action.person_id)
            if person is None or not request.scope.reaches(person.id, person.institution_id):
                raise InvalidValue("personId", "is not the id of a user")


def _institution(request: NewAction, action: Action, directory: Directory) -> int | None:
    """That of the elder whom it is about, or else of who requests it, or of the device."""
    elder = directory.people.get(request.elder_id or action.person_id or 0)
    if elder is not None and elder.is_elder:
        return elder.institution_id
    if not request.scope.is_everything:
        return request.scope.institution_id
    profiles = directory.devices.get(action.context.get("device_id") or "", ())
    return next((profile.institution_id for profile in profiles), None)


def _begin(context: ActionContext, plan: PlanToRun, now: datetime) -> ActionTransition:
    action = context.action
    decision = run.advance(action.run, context, {}, now) if plan.is_on else run.skip(action.run)
    return ActionTransition(action, decision, now, is_new=True)


# The digest is NULL for internal actions, for those that are older than digests, and once the variables were forgotten.
_FIND_KEYS = text(
    """
    SELECT key_owner, evaluation_key, id, action_plan_id, request_digest FROM actions
     WHERE (key_owner, evaluation_key) IN (SELECT * FROM unnest(CAST(:owners AS text[]), CAST(:keys AS text[])))
    """
)


def _requested_earlier(conn: Connection, again: Sequence[Action]) -> dict[tuple[str, str], UUID]:
    """The ids of the earlier actions, by evaluation key and its owner."""
    if not again:
        return {}
    wanted = [_key(action) for action in again]
    values = {"owners": [owner for owner, _ in wanted], "keys": [key for _, key in wanted]}
    rows = {(row.key_owner, row.evaluation_key): row for row in conn.execute(_FIND_KEYS, values)}
    for action in again:
        row = rows[_key(action)]
        if row.action_plan_id != action.plan_id:
            raise EvaluationKeyReused("This evaluation key was used for another plan.")
        if row.request_digest is not None and bytes(row.request_digest) != action.request_digest:
            raise EvaluationKeyReused("This evaluation key was used with other variables, or for another recipient.")
    return {key: row.id for key, row in rows.items()}


def _key(action: Action) -> tuple[str, str]:
    return action.key_owner, action.evaluation_key or ""


# Waits for the holders of the actions. They may wait in turn for actions with higher ids, for dead letters (a redrive
# does) and for channels of the directory, but never for tasks and students, which the callers of this function hold.
# Call it once in a transaction: a second call may lock an action with a lower id, and then deadlock with a recorder,
# which wakes many. Waiting for the row of a notification could deadlock as well, because the dispatcher
# locks notifications before actions.
_LOCK_OF_TASK = text(
    f"""
    SELECT {ACTION_COLUMNS}, clock_timestamp() AS read_at FROM actions
     WHERE (task_id, person_id) IN (SELECT * FROM unnest(CAST(:task_ids AS uuid[]), CAST(:person_ids AS bigint[])))
       AND status = 'RUNNING' AND data ->> 'type' = :message_type
     ORDER BY id FOR NO KEY UPDATE
    """
)


def cancel_actions(conn: Connection, wanted: Sequence[tuple[UUID, int]], message_type: str) -> int:
    """Cancels the running actions of this type for these pairs of a task and a person, and their notifications that
    have not been sent. Returns the number of actions."""
    values = {
        "task_ids": [task_id for task_id, _ in wanted],
        "person_ids": [person_id for _, person_id in wanted],
        "message_type": message_type,
    }
    transitions = [_cancel(row) for row in conn.execute(_LOCK_OF_TASK, values)]
    write(conn, transitions)
    return len(transitions)


_LOCK_RUNNING = text(
    f"SELECT {ACTION_COLUMNS}, clock_timestamp() AS read_at FROM actions"
    " WHERE id = ANY(:ids) AND status = 'RUNNING' ORDER BY id FOR NO KEY UPDATE"
)


def cancel_actions_by_id(conn: Connection, ids: Sequence[UUID]) -> int:
    """Cancels those that are running, and their notifications. Call it once in a transaction, like the one above."""
    transitions = [_cancel(row) for row in conn.execute(_LOCK_RUNNING, {"ids": ids})]
    write(conn, transitions)
    return len(transitions)


def _cancel(row: queries.ActionRow) -> ActionTransition:
    action = queries.action_of(row)
    return ActionTransition(action, run.cancel(action.run), row.read_at)


_LOCK_ONE = text(f"SELECT {ACTION_COLUMNS}, clock_timestamp() AS read_at FROM actions WHERE id = :id FOR NO KEY UPDATE")


def reopen(conn: Connection, action_id: UUID, step_order: int) -> bool:
    """Runs a failed step again (see `run.reopen`). False if there is no such step or it has not failed."""
    row = conn.execute(_LOCK_ONE, {"id": action_id}).one_or_none()
    if row is None:
        return False
    action = queries.action_of(row)
    asked = [id_ for step in action.run.steps if step.order == step_order for id_ in step.notification_ids]
    live = [id_ for id_, state in queries.notifications(conn, asked).items() if state.is_live]
    decision = run.reopen(action.run, step_order, live, row.read_at)
    if decision is None:
        return False
    write(conn, [ActionTransition(action, decision, row.read_at)])
    return True
