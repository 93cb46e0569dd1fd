"""An action with all that was read for it: who can be reached, what is to be said, and what settings ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from app.delivery.actions import targets
from app.delivery.actions.models import Origin
from app.delivery.actions.run import INVALID_ADDRESS
from app.delivery.actions.steps import Nobody, Resolution, Run, Special, StepRun, Target
from app.delivery.messages.addresses import InvalidAddress, check_address
from app.delivery.messages.rules import CHANNEL_TYPES, DeliveryRules
from app.delivery.messages.submit import USER
from app.delivery.messages.values import NotificationType, Priority
from app.delivery.words.rendering import RenderFailed, TemplateInvalid, Words, render
from app.delivery.words.templates import Templates, choose_template
from app.foundation.ids import uuid7

UNKNOWN_CHANNEL = "UNKNOWN_CHANNEL"
UNKNOWN_TEMPLATE = "UNKNOWN_TEMPLATE"
TEMPLATE_RENDER_FAILED = "TEMPLATE_RENDER_FAILED"
_BY_PHONE = frozenset({NotificationType.SMS.channel_type, NotificationType.WHATSAPP.channel_type})


@dataclass(frozen=True)
class Action:
    id: UUID
    plan_id: int
    run: Run
    origin: Origin = Origin.INTERNAL
    evaluation_key: str | None = None
    person_id: int | None = None
    task_id: UUID | None = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    data: Mapping[str, str] = field(default_factory=dict[str, str])
    priority: Priority = Priority.NORMAL
    created_at: datetime | None = None

    @property
    def about(self) -> targets.About:
        return targets.About(self.plan_id, self.person_id, self.context.get("device_id"))


@dataclass(frozen=True)
class Known:
    """What was read for all actions of a batch together."""

    directory: targets.Directory
    templates: Templates
    rendered: dict[tuple[str, str, int], Words | str] = field(default_factory=dict[tuple[str, str, int], Words | str])
    """Offers of one moment all say the same."""


@dataclass(frozen=True)
class ActionContext:
    action: Action
    known: Known
    rules: DeliveryRules | None
    """None where an action is asked for: what takes the settings is left to the conductor, who knows them."""

    def resolve(self, step: StepRun) -> Resolution:
        if step.channel_type in CHANNEL_TYPES:
            return targets.resolve(step, self.action.about, self.known.directory)
        if self.rules is None:
            return Special.LATER
        return Special.ELSEWHERE if step.channel_type in self.rules.handover_types else Nobody(UNKNOWN_CHANNEL)

    def fault(self, step: StepRun, target: Target) -> str | None:
        try:
            if self.addressed(target) is None:
                return Special.LATER
        except InvalidAddress:
            return INVALID_ADDRESS
        words = self.words(step, target)
        return words if isinstance(words, str) else None

    def new_id(self) -> UUID:
        return uuid7()

    def addressed(self, target: Target) -> Target | None:
        """The target with its address in the one form that channels rely on."""
        if target.user_id is not None and target.recipient == f"{USER}{target.user_id}":
            return target
        if self.rules is None and target.channel_type in _BY_PHONE:
            return None
        country_code = self.rules.country_code if self.rules is not None else ""
        return replace(target, recipient=check_address(target.channel_type.upper(), target.recipient, country_code))

    def words(self, step: StepRun, target: Target) -> Words | str:
        """Or the code of what is wrong with them. A step without a template carries data and no words."""
        if step.template_key is None:
            return Words("", "")
        key = step.template_key, target.locale, id(self.action.variables)
        if key not in self.known.rendered:
            self.known.rendered[key] = self._rendered(step.template_key, target.locale)
        return self.known.rendered[key]

    def _rendered(self, key: str, locale: str) -> Words | str:
        template = choose_template(self.known.templates, key, locale)
        if template is None:
            return UNKNOWN_TEMPLATE
        try:
            return render(template, self.action.variables)
        except (RenderFailed, TemplateInvalid):
            return TEMPLATE_RENDER_FAILED
