"""What is done when something is to be told, and in which words, for coordinators."""

from app.api.access import COORDINATORS
from app.api.entries import Resource, add_entries, created, given, house, shown_page
from app.api.routing import Call, Reply, Routes
from app.api.schemas import PageJson
from app.api.schemas_v1 import (
    ActionPlanJson,
    ActionPlanStepJson,
    ActionRouteJson,
    EntriesQuery,
    NewPlanBody,
    NewRouteBody,
    NewStepBody,
    NewTemplateBody,
    PlanChangesBody,
    PlansQuery,
    PreviewBody,
    RouteChangesBody,
    RoutesQuery,
    StepChangesBody,
    TemplateChangesBody,
    TemplateJson,
    TemplatesQuery,
    WordsJson,
)
from app.api.validation import PathIdentifier
from app.delivery.actions.requested import problem_with
from app.delivery.plans import service as plans
from app.delivery.plans.errors import ShippedPlan, ShippedTemplate, StepOrderTaken, TemplateInUse, TemplateTaken
from app.errors import InvalidValue, NotFound

routes = Routes("Plans")

PLANS = "/api/v1/action-plans"
STEPS = f"{PLANS}/{{planId}}/steps"
STEP = f"{STEPS}/{{stepId}}"
TEMPLATES = "/api/v1/templates"

add_entries(
    routes,
    Resource(
        plans.PLANS,
        PLANS,
        "planId",
        "action plan",
        ActionPlanJson,
        NewPlanBody,
        PlanChangesBody,
        PlansQuery,
        needed=(ShippedPlan,),
    ),
)

STEP_ENTRIES = Resource(
    plans.STEPS, STEPS, "stepId", "step", ActionPlanStepJson, NewStepBody, StepChangesBody, EntriesQuery
)


@routes.add("GET", STEPS, who=COORDINATORS, answers={200: PageJson[ActionPlanStepJson]}, errors=(NotFound,))
def list_steps(call: Call, plan_id: PathIdentifier) -> PageJson[ActionPlanStepJson]:
    """List the steps of a plan, in the order they run."""
    with call.services.db.reading() as conn:
        return shown_page(STEP_ENTRIES, plans.list_steps(conn, plan_id))


@routes.add(
    "POST",
    STEPS,
    who=COORDINATORS,
    answers={201: ActionPlanStepJson},
    errors=(NotFound, InvalidValue, StepOrderTaken),
)
def create_step(call: Call, plan_id: PathIdentifier, body: NewStepBody) -> Reply:
    """Add a step to a plan.

    Actions that are under way keep the steps they began with.
    """
    with call.services.db.transaction() as conn:
        step = plans.create_step(conn, plan_id, given(body), house(call))
    return created(STEP_ENTRIES, step, STEPS.format(planId=plan_id))


@routes.add("GET", STEP, who=COORDINATORS, answers={200: ActionPlanStepJson}, errors=(NotFound,))
def get_step(call: Call, plan_id: PathIdentifier, step_id: PathIdentifier) -> ActionPlanStepJson:
    """Show a step of a plan."""
    with call.services.db.reading() as conn:
        return ActionPlanStepJson.model_validate(plans.get_step(conn, plan_id, step_id))


@routes.add(
    "PATCH",
    STEP,
    who=COORDINATORS,
    answers={200: ActionPlanStepJson},
    errors=(NotFound, InvalidValue, StepOrderTaken),
)
def change_step(
    call: Call, plan_id: PathIdentifier, step_id: PathIdentifier, body: StepChangesBody
) -> ActionPlanStepJson:
    """Change a step of a plan.

    Absent fields stay as they are. Where it gets another order, its routes go with it.
    """
    with call.services.db.transaction() as conn:
        step = plans.edit_step(conn, plan_id, step_id, given(body), house(call))
    return ActionPlanStepJson.model_validate(step)


@routes.add("DELETE", STEP, who=COORDINATORS, answers={204: None}, errors=(NotFound, ShippedPlan))
def retire_step(call: Call, plan_id: PathIdentifier, step_id: PathIdentifier) -> None:
    """Retire a step of a plan, and its routes with it."""
    with call.services.db.transaction() as conn:
        plans.retire_step(conn, plan_id, step_id)


add_entries(
    routes,
    Resource(
        plans.ROUTES,
        "/api/v1/action-routes",
        "routeId",
        "action route",
        ActionRouteJson,
        NewRouteBody,
        RouteChangesBody,
        RoutesQuery,
    ),
)
add_entries(
    routes,
    Resource(
        plans.TEMPLATES,
        TEMPLATES,
        "templateId",
        "template",
        TemplateJson,
        NewTemplateBody,
        TemplateChangesBody,
        TemplatesQuery,
        taken=(TemplateTaken,),
        needed=(ShippedTemplate, TemplateInUse),
    ),
)


@routes.add(
    "POST",
    f"{TEMPLATES}/{{templateId}}/preview",
    who=COORDINATORS,
    answers={200: WordsJson},
    errors=(NotFound, InvalidValue),
)
def preview_template(call: Call, template_id: PathIdentifier, body: PreviewBody) -> WordsJson:
    """Fill a template with variables, and show what somebody would read."""
    problem = problem_with(body.variables)
    if problem:
        raise InvalidValue("variables", problem)
    with call.services.db.reading() as conn:
        return WordsJson.model_validate(plans.preview(conn, template_id, body.variables))
