"""Plans, their steps, routes and templates."""

from app.api.access import ADMIN, COORDINATORS
from app.api.routing import Call, Reply, Routes
from app.api.schemas import PageJson
from app.api.schemas_v1 import (
    ActionPlanJson,
    ActionPlanStepJson,
    ActionRouteJson,
    NewPlanBody,
    NewRouteBody,
    NewStepBody,
    NewTemplateBody,
    PlanChangesBody,
    PlansQuery,
    PreviewBody,
    RouteChangesBody,
    RoutesQuery,
    RowsQuery,
    StepChangesBody,
    TemplateChangesBody,
    TemplateJson,
    TemplatesQuery,
    WordsJson,
    WordsPreviewBody,
)
from app.api.table_routes import Resource, add_table_routes, created, every_row, given, shown_page
from app.api.validation import PathIdentifier
from app.db.tables import ChangedMeanwhile
from app.delivery import service as delivery
from app.delivery.contract import (
    DeliveryRules,
    ShippedPlan,
    ShippedTemplate,
    StepOrderTaken,
    TemplateInUse,
    TemplateTaken,
    Words,
)
from app.delivery.service import problem_with_variables
from app.foundation.errors import InvalidValue, NotFound

routes = Routes("Plans")

PLANS = "/api/v1/action-plans"
STEPS = f"{PLANS}/{{planId}}/steps"
STEP = f"{STEPS}/{{stepId}}"
TEMPLATES = "/api/v1/templates"

add_table_routes(
    routes,
    Resource(
        delivery.PLANS,
        DeliveryRules.from_settings,
        PLANS,
        "planId",
        "action plan",
        ActionPlanJson,
        NewPlanBody,
        PlanChangesBody,
        PlansQuery,
        every_row,
        change_errors=(ChangedMeanwhile,),
        retire_errors=(ShippedPlan,),
    ),
)

STEP_ROWS = Resource(
    delivery.STEPS,
    DeliveryRules.from_settings,
    STEPS,
    "stepId",
    "step",
    ActionPlanStepJson,
    NewStepBody,
    StepChangesBody,
    RowsQuery,
    every_row,
)


@routes.add("GET", STEPS, who=COORDINATORS, answers={200: PageJson[ActionPlanStepJson]}, errors=(NotFound,))
def list_steps(call: Call, plan_id: PathIdentifier) -> PageJson[ActionPlanStepJson]:
    """List the steps of a plan, in the order in which they run.

    A retired plan has the steps that were retired with it.
    """
    with call.services.db.reading() as conn:
        return shown_page(STEP_ROWS, delivery.list_steps(conn, plan_id))


@routes.add(
    "POST",
    STEPS,
    who=ADMIN,
    answers={201: ActionPlanStepJson},
    errors=(NotFound, InvalidValue, StepOrderTaken),
)
def create_step(call: Call, plan_id: PathIdentifier, body: NewStepBody) -> Reply:
    """Add a step to a plan.

    Running actions keep the steps they began with.
    """
    with call.services.db.transaction() as conn:
        step = delivery.create_step(conn, plan_id, given(body), STEP_ROWS.rules_for(call))
    return created(STEP_ROWS, step, STEPS.format(planId=plan_id))


@routes.add("GET", STEP, who=COORDINATORS, answers={200: ActionPlanStepJson}, errors=(NotFound,))
def get_step(call: Call, plan_id: PathIdentifier, step_id: PathIdentifier) -> ActionPlanStepJson:
    """Show a step of a plan, a retired one, too."""
    with call.services.db.reading() as conn:
        return ActionPlanStepJson.model_validate(delivery.show_step(conn, plan_id, step_id))


@routes.add(
    "PATCH",
    STEP,
    who=ADMIN,
    answers={200: ActionPlanStepJson},
    errors=(NotFound, InvalidValue, StepOrderTaken, ChangedMeanwhile),
)
def change_step(
    call: Call, plan_id: PathIdentifier, step_id: PathIdentifier, body: StepChangesBody
) -> ActionPlanStepJson:
    """Change a step of a plan.

    Absent fields stay as they are. If its order changes, its routes move with it.
    """
    with call.services.db.transaction() as conn:
        step = delivery.edit_step(conn, plan_id, step_id, given(body), STEP_ROWS.rules_for(call))
    return ActionPlanStepJson.model_validate(step)


@routes.add("DELETE", STEP, who=ADMIN, answers={204: None}, errors=(NotFound, ShippedPlan))
def retire_step(call: Call, plan_id: PathIdentifier, step_id: PathIdentifier) -> None:
    """Retire a step of a plan, and its routes with it."""
    with call.services.db.transaction() as conn:
        delivery.retire_step(conn, plan_id, step_id)


add_table_routes(
    routes,
    Resource(
        delivery.ROUTES,
        DeliveryRules.from_settings,
        "/api/v1/action-routes",
        "routeId",
        "action route",
        ActionRouteJson,
        NewRouteBody,
        RouteChangesBody,
        RoutesQuery,
        every_row,
    ),
)
add_table_routes(
    routes,
    Resource(
        delivery.TEMPLATES,
        DeliveryRules.from_settings,
        TEMPLATES,
        "templateId",
        "template",
        TemplateJson,
        NewTemplateBody,
        TemplateChangesBody,
        TemplatesQuery,
        every_row,
        write_errors=(TemplateTaken,),
        change_errors=(ChangedMeanwhile,),
        retire_errors=(ShippedTemplate, TemplateInUse),
    ),
)


@routes.add(
    "POST",
    f"{TEMPLATES}/{{templateId}}/preview",
    who=COORDINATORS,
    answers={200: WordsJson},
    errors=(NotFound, InvalidValue),
    is_witnessed=False,
)
def preview_template(call: Call, template_id: PathIdentifier, body: PreviewBody) -> WordsJson:
    """Render a template with variables."""
    _check_variables(body)
    with call.services.db.reading() as conn:
        return WordsJson.model_validate(delivery.preview_template(conn, template_id, body.variables))


@routes.add(
    "POST",
    f"{TEMPLATES}/preview",
    who=ADMIN,
    answers={200: WordsJson},
    errors=(InvalidValue,),
    is_witnessed=False,
)
def preview_words(call: Call, body: WordsPreviewBody) -> WordsJson:
    """Render words that are not stored, with variables.

    They have the limits of a template, and nothing is stored.
    """
    _check_variables(body)
    return WordsJson.model_validate(delivery.preview_words(Words(body.subject, body.body), body.variables))


def _check_variables(body: PreviewBody) -> None:
    problem = problem_with_variables(body.variables)
    if problem:
        raise InvalidValue("variables", problem)
