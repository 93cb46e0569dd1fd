"""The settings for addresses and channel types."""

from dataclasses import dataclass

from app.delivery.messages.values import NotificationType
from app.foundation.errors import InvalidValue
from app.settings.settings import Settings

CHANNEL_TYPES = tuple(type_.channel_type for type_ in NotificationType)


@dataclass(frozen=True)
class DeliveryRules:
    country_code: str
    """The country of phone numbers that are written without one."""
    handover_types: frozenset[str]
    """The channel types of steps that another service carries out."""
    sms_countries: tuple[str, ...] = ()
    """The country codes that SMS go to; empty for all."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "DeliveryRules":
        return cls(settings.country_code, settings.handover_types, settings.sms_country_codes)

    def check_step_type(self, field: str, channel_type: str) -> None:
        known = [*CHANNEL_TYPES, *sorted(self.handover_types)]
        if channel_type not in known:
            raise InvalidValue(field, f"is not one of {', '.join(known)}")
