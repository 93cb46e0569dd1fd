"""The tables that operators edit: plans, their steps, routes and templates."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, select, update

from app.db.tables import EditableTable, TableRow, Values, retire_all
from app.delivery.directory.service import PROFILES
from app.delivery.messages.rules import DeliveryRules
from app.delivery.plans.errors import ShippedPlan, ShippedTemplate, StepOrderTaken, TemplateInUse, TemplateTaken
from app.delivery.plans.models import action_plan_steps, action_plans, action_routes
from app.delivery.words.models import message_templates
from app.delivery.words.rendering import Words, check, render
from app.delivery.words.shipped_templates import TEMPLATES as SHIPPED_TEMPLATES
from app.foundation.errors import InvalidValue, NotFound
from app.foundation.pages import Page

HIGHEST_ORDER = 100
"""The highest step order, and so the highest number of steps of a plan. A list of steps is one page."""


# Plans


def _retire_parts(conn: Connection, plan: TableRow) -> None:
    if plan.key is not None:
        raise ShippedPlan("The product itself asks for this plan. Switch it off instead.")
    retire_all(conn, action_routes, action_plan_id=plan.id)
    retire_all(conn, action_plan_steps, action_plan_id=plan.id)


PLANS = EditableTable[DeliveryRules](action_plans, "action plan", after_retire=(_retire_parts,))


# Steps: a transaction that changes a step locks the plan first, so that it can count and move steps safely.


def _check_step(conn: Connection, values: Values, _current: TableRow | None, rules: DeliveryRules) -> None:
    if "channel_type" in values:
        rules.check_step_type("channelType", values["channel_type"])
    for place, channel_type in enumerate(values.get("fallback", ())):
        rules.check_step_type(f"fallback.{place}", channel_type)
    if values.get("template_key") is not None:
        _check_template_key(conn, values["template_key"])


def _check_template_key(conn: Connection, key: str) -> None:
    templates = message_templates.c
    in_use = select(templates.id).where(templates.key == key, templates.retired_at.is_(None))
    if conn.execute(in_use.with_for_update(read=True)).first() is None:
        query = select(templates.key).where(templates.retired_at.is_(None)).distinct().order_by(templates.key)
        known = ", ".join(conn.execute(query.limit(50)).scalars())
        raise InvalidValue("templateKey", f"is not the key of a template; there are {known or 'none'}")


STEPS = EditableTable(
    action_plan_steps, "step", _check_step, conflicts={"action_plan_steps_once_per_order": StepOrderTaken}
)


def list_steps(conn: Connection, plan_id: int) -> Page[TableRow]:
    """The steps in the order in which they run. A retired plan has those that were retired with it."""
    plan, steps = PLANS.show(conn, plan_id), action_plan_steps.c
    is_listed = steps.retired_at.is_(None) if plan.retired_at is None else steps.retired_at >= plan.retired_at
    query = select(action_plan_steps).where(steps.action_plan_id == plan_id, is_listed)
    return Page[TableRow](list(conn.execute(query.order_by(steps.step_order))), None)


def show_step(conn: Connection, plan_id: int, step_id: int) -> TableRow:
    """A step of this plan, whether it is retired or in use."""
    return _of_plan(plan_id, STEPS.show(conn, step_id))


def _step_in_use(conn: Connection, plan_id: int, step_id: int) -> TableRow:
    return _of_plan(plan_id, STEPS.get(conn, step_id))


def _of_plan(plan_id: int, step: TableRow) -> TableRow:
    if step.action_plan_id != plan_id:
        raise NotFound("This plan has no such step.")
    return step


def create_step(conn: Connection, plan_id: int, values: Values, rules: DeliveryRules) -> TableRow:
    PLANS.get(conn, plan_id, lock=True)
    return STEPS.create(conn, {**values, "action_plan_id": plan_id}, rules)


def edit_step(conn: Connection, plan_id: int, step_id: int, changes: Values, rules: DeliveryRules) -> TableRow:
    """If the order of the step changes, its routes get the new order too."""
    PLANS.get(conn, plan_id, lock=True)
    before = _step_in_use(conn, plan_id, step_id)
    step = STEPS.edit(conn, step_id, changes, rules)
    if step.step_order != before.step_order:
        routes = action_routes.c
        conn.execute(
            update(action_routes)
            .where(
                routes.action_plan_id == plan_id,
                routes.step_order == before.step_order,
                routes.retired_at.is_(None),
            )
            .values(step_order=step.step_order, updated_at=func.clock_timestamp())
        )
    return step


def retire_step(conn: Connection, plan_id: int, step_id: int) -> None:
    plan = PLANS.get(conn, plan_id, lock=True)
    step = _step_in_use(conn, plan_id, step_id)
    if plan.key is not None and len(list_steps(conn, plan_id).items) == 1:
        raise ShippedPlan(
            "The product itself asks for this plan, and this is its last step. Switch the plan off instead."
        )
    STEPS.retire(conn, step_id)
    retire_all(conn, action_routes, action_plan_id=plan_id, step_order=step.step_order)


# Routes


def _check_route(conn: Connection, values: Values, current: TableRow | None, rules: DeliveryRules) -> None:
    if current is None:
        PLANS.refer(conn, "actionPlanId", values["action_plan_id"])
        steps = list_steps(conn, values["action_plan_id"]).items
        if values["step_order"] not in {step.step_order for step in steps}:
            raise InvalidValue("stepOrder", "is not the order of a step of this plan")
    if "recipient_profile_id" in values:
        PROFILES.refer(conn, "recipientProfileId", values["recipient_profile_id"])
    if values.get("channel_type") is not None:
        rules.check_step_type("channelType", values["channel_type"])


# A route stays when its profile is retired, so that its step fails instead of going to somebody else.
ROUTES = EditableTable(action_routes, "route", _check_route)


# Templates


def _check_words(_conn: Connection, values: Values, current: TableRow | None, _rules: DeliveryRules) -> None:
    words = {"subject": "", "body": ""} if current is None else {"subject": current.subject, "body": current.body}
    words |= {name: values[name] for name in words if name in values}
    check(Words(**words))


def _refuse_template_in_use(conn: Connection, template: TableRow) -> None:
    if template.key in SHIPPED_TEMPLATES:
        raise ShippedTemplate("The product itself says these words. Edit them instead.")
    templates, steps = message_templates.c, action_plan_steps.c
    others = select(templates.id).where(templates.key == template.key, templates.retired_at.is_(None))
    others = others.with_for_update(read=True)
    using = select(steps.id).where(steps.template_key == template.key, steps.retired_at.is_(None))
    if conn.execute(others).first() is None and conn.execute(using).first() is not None:
        raise TemplateInUse("A step of a plan says these words. Give the step others first.")


TEMPLATES = EditableTable(
    message_templates,
    "template",
    _check_words,
    after_retire=(_refuse_template_in_use,),
    conflicts={"message_templates_once": TemplateTaken},
)


def preview_template(conn: Connection, template_id: int, variables: Mapping[str, Any]) -> Words:
    template = TEMPLATES.get(conn, template_id)
    return render(Words(template.subject, template.body), variables)
