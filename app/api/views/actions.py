"""Actions: requests to run a plan, and their progress."""

from uuid import UUID

from app.api.access import COORDINATORS
from app.api.load import Draining, refuse_while_draining
from app.api.routing import Call, Reply, Routes
from app.api.schemas import PageJson
from app.api.schemas_actions import ActionInFullJson, ActionJson, ActionsQuery, NewActionBody
from app.delivery import service as delivery
from app.delivery.contract import BacklogFull, EvaluationKeyReused, PlanNotFound, SendingLimited, SendingLimits
from app.delivery.service import problem_with_variables
from app.foundation.errors import InvalidValue, NotFound

routes = Routes("Actions")


@routes.add(
    "POST",
    "/api/v1/actions",
    who=COORDINATORS,
    answers={202: ActionInFullJson, 200: ActionInFullJson},
    errors=(InvalidValue, PlanNotFound, EvaluationKeyReused, SendingLimited, BacklogFull, Draining),
    is_witnessed=False,
)
def request_action(call: Call, body: NewActionBody) -> Reply:
    """Run a plan.

    202 once the action is committed; `GET /api/v1/actions/{id}` shows its progress. The same `evaluationKey` of the
    same caller again is answered with 200 and the action of the first request, or with 409 if it asks for something
    else.
    """
    refuse_while_draining()
    call.site.backlog.admit()
    with call.services.db.transaction() as conn:
        call.site.backlog.hold_place(conn)
        (requested,) = delivery.request_actions(conn, [body.to_new_action(_plan(body), call.caller.id, call.scope)])
        shown = ActionInFullJson.model_validate(delivery.get_action(conn, call.scope, requested.id))
        if requested.is_new:
            limits = SendingLimits.from_settings(call.services.settings)
            about = (shown.action_plan_id, shown.person_id)
            messages = [message.id for step in shown.steps for message in step.notifications]
            delivery.count_action(conn, limits, call.caller.id, about, messages)
    return Reply(shown, 202 if requested.is_new else 200, {"Location": f"/api/v1/actions/{requested.id}"})


def _plan(body: NewActionBody) -> int | str:
    problem = problem_with_variables(body.variables or {})
    if problem:
        raise InvalidValue("variables", problem)
    plans = [plan for plan in (body.action_plan_id, body.plan_key) if plan is not None]
    if len(plans) != 1:
        raise InvalidValue("actionPlanId", "is what is asked for, or else planKey: one of the two")
    return plans[0]


@routes.add("GET", "/api/v1/actions", who=COORDINATORS, answers={200: PageJson[ActionJson]}, errors=(InvalidValue,))
def list_actions(call: Call, query: ActionsQuery) -> PageJson[ActionJson]:
    """List actions, newest first."""
    with call.services.db.reading() as conn:
        page = delivery.list_actions(
            conn,
            call.scope,
            status=query.status,
            action_plan_id=query.action_plan_id,
            cursor=query.cursor,
            limit=query.limit,
        )
    return PageJson[ActionJson].model_validate(page)


@routes.add("GET", "/api/v1/actions/{actionId}", who=COORDINATORS, answers={200: ActionInFullJson}, errors=(NotFound,))
def get_action(call: Call, action_id: UUID) -> ActionInFullJson:
    """Show one action with its steps and their notifications."""
    with call.services.db.reading() as conn:
        return ActionInFullJson.model_validate(delivery.get_action(conn, call.scope, action_id))
