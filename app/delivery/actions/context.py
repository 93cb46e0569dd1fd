"""An action with the data that decides its next transition: the directory, its templates, and the settings."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from app.delivery.actions import targets
from app.delivery.actions.error_codes import INVALID_ADDRESS, UNKNOWN_CHANNEL
from app.delivery.actions.models import Origin
from app.delivery.actions.steps import Draft, Resolution, Run, StepRun, Target, TargetFault, Unresolved
from app.delivery.messages.addresses import InvalidAddress, check_address
from app.delivery.messages.rules import CHANNEL_TYPES, DeliveryRules
from app.delivery.messages.submit import USER
from app.delivery.messages.traits import AddressForm, traits_of
from app.delivery.messages.values import Priority
from app.delivery.words.rendering import Words
from app.delivery.words.templates import BatchRenderer, TemplateFault
from app.foundation.ids import uuid7

NO_WORDS = Words("", "")


@dataclass(frozen=True)
class Action:
    id: UUID
    plan_id: int
    run: Run
    origin: Origin = Origin.INTERNAL
    evaluation_key: str | None = None
    key_owner: str = ""
    """Whose key it is, while the action is being requested."""
    person_id: int | None = None
    institution_id: int | None = None
    """The institution whose coordinators see it, and whose profiles it may go to."""
    task_id: UUID | None = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    data: Mapping[str, str] = field(default_factory=dict[str, str])
    priority: Priority = Priority.NORMAL
    created_at: datetime | None = None

    @property
    def request_digest(self) -> bytes | None:
        """A hash of what is sent and to whom, if somebody else asked with a key. The rest of a request, such as its
        trace, may change when it is repeated. Our own packages repeat a key on purpose, to send one message for many
        causes."""
        if self.evaluation_key is None or self.origin is Origin.INTERNAL:
            return None
        device_id = self.context.get("device_id")
        asked = [self.plan_id, self.person_id, device_id, dict(self.variables), dict(self.data)]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()

    @property
    def about(self) -> targets.About:
        return targets.About(self.plan_id, self.person_id, self.context.get("device_id"), self.institution_id)


@dataclass(frozen=True)
class ActionContext:
    action: Action
    directory: targets.Directory
    renderer: BatchRenderer
    rules: DeliveryRules | None
    """None while an action is being requested. The conductor has the settings, so it runs the steps that need them."""

    def resolve(self, step: StepRun) -> Resolution:
        if step.channel_type in CHANNEL_TYPES:
            return targets.resolve(step, self.action.about, self.directory)
        if self.rules is None:
            return Unresolved.NEEDS_SETTINGS
        return Unresolved.ELSEWHERE if step.channel_type in self.rules.handover_types else TargetFault(UNKNOWN_CHANNEL)

    def draft(self, step: StepRun, target: Target) -> Draft | TargetFault | Unresolved:
        try:
            recipient = self._recipient(target)
        except InvalidAddress:
            return TargetFault(INVALID_ADDRESS)
        if recipient is None:
            return Unresolved.NEEDS_SETTINGS
        words = self._words(step, target)
        return TargetFault(words.value) if isinstance(words, TemplateFault) else Draft(recipient, words)

    def new_id(self) -> UUID:
        return uuid7()

    def _recipient(self, target: Target) -> str | None:
        """The canonical form of the address; None if it depends on settings that are not here."""
        if target.user_id is not None and target.recipient == f"{USER}{target.user_id}":
            return target.recipient
        if self.rules is None and traits_of(target.channel_type).address is AddressForm.PHONE:
            return None
        country_code = self.rules.country_code if self.rules is not None else ""
        return check_address(target.channel_type.upper(), target.recipient, country_code)

    def _words(self, step: StepRun, target: Target) -> Words | TemplateFault:
        """The rendered template. A step without a template sends only data."""
        if step.template_key is None:
            return NO_WORDS
        return self.renderer.render(step.template_key, target.locale, self.action.variables)
