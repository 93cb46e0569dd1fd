"""What the rest of delivery has to know about each type of notification. A new type needs its row here."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.delivery.messages.values import NotificationType


class AddressForm(StrEnum):
    """The form of an address. `addresses.py` has a check for each."""

    EMAIL = "EMAIL"
    PHONE = "PHONE"
    URL = "URL"
    USER = "USER"
    USER_OR_TOKEN = "USER_OR_TOKEN"
    LINE = "LINE"


class ReachedBy(StrEnum):
    """How a step reaches a user who has no channel of the type in the directory."""

    USER_ID = "USER_ID"
    PHONE_NUMBER = "PHONE_NUMBER"


@dataclass(frozen=True)
class Traits:
    address: AddressForm | None = None
    """None if no channel carries the type."""
    reached_by: ReachedBy | None = None
    is_for_apps: bool = False
    """Apps get the id of the notification in its data, so that they recognise a message that they have shown."""
    is_push: bool = False
    """FCM bounds the size of its content, and keeps some names for itself."""
    longest_text: int | None = None
    """The highest number of characters that providers of the type take."""
    is_limited_to_countries: bool = False
    """True if a message costs money that depends on the country, so that the settings list the countries."""
    needs_verification: bool = True
    """False if this service delivers the type itself, so that no other party could confirm an address."""


TRAITS: Mapping[NotificationType, Traits] = {
    NotificationType.EMAIL: Traits(AddressForm.EMAIL),
    NotificationType.SMS: Traits(
        AddressForm.PHONE,
        ReachedBy.PHONE_NUMBER,
        # Networks join at most ten SMS into one message.
        longest_text=1600,
        is_limited_to_countries=True,
    ),
    NotificationType.PUSH: Traits(AddressForm.USER_OR_TOKEN, ReachedBy.USER_ID, is_for_apps=True, is_push=True),
    NotificationType.IN_APP: Traits(AddressForm.USER, ReachedBy.USER_ID, is_for_apps=True, needs_verification=False),
    NotificationType.WEBHOOK: Traits(AddressForm.URL),
    NotificationType.WHATSAPP: Traits(AddressForm.PHONE, longest_text=4096),
    NotificationType.AUDIT: Traits(AddressForm.LINE, needs_verification=False),
}


_BY_NAME: Mapping[str, Traits] = {type_.value: traits for type_, traits in TRAITS.items()}
_UNKNOWN = Traits()


def traits_of(type_: str) -> Traits:
    """Takes the type of a notification, and also a channel type, which is the same word in lower case. Plans may name
    channel types that another service carries out."""
    return _BY_NAME.get(type_.upper(), _UNKNOWN)
