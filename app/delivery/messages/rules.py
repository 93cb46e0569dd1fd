"""What the settings say about addresses and channel types."""

from dataclasses import dataclass

from app.delivery.messages.values import NotificationType
from app.foundation.errors import InvalidValue
from app.settings.settings import Settings

CHANNEL_TYPES = tuple(type_.channel_type for type_ in NotificationType)


@dataclass(frozen=True)
class DeliveryRules:
    country_code: str
    """For phone numbers that are written without a country."""
    handover_types: frozenset[str]
    """Types of a plan's steps that another service carries out."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "DeliveryRules":
        return cls(settings.country_code, settings.handover_types)

    def check_step_type(self, field: str, channel_type: str) -> None:
        known = [*CHANNEL_TYPES, *sorted(self.handover_types)]
        if channel_type not in known:
            raise InvalidValue(field, f"is not one of {', '.join(known)}")
