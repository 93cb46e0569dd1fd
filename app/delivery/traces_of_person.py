"""Finds what delivery holds of a person: messages to them, and messages about them to others."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.delivery.messages.addresses import InvalidAddress, check_address
from app.delivery.messages.dead_letter_states import DeadLetterStatus
from app.delivery.messages.states import LIVE
from app.delivery.messages.traits import AddressForm, traits_of
from app.delivery.messages.values import NotificationType

SHORTEST_NAME = 5
"""A shorter name, or one of a single word, is searched only in messages about the person's own tasks."""
SHORTEST_PHONE = 7
_CARRIED_BY_PHONE = next(type_ for type_ in NotificationType if traits_of(type_).address is AddressForm.PHONE)


@dataclass(frozen=True)
class PersonTraces:
    """What to search for. Repeated after the person was forgotten, only the ids are left."""

    user_id: int
    names: tuple[str, ...] = field(default=(), repr=False)
    """The full name and the first name."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Phone numbers, tokens and other words that only this person has."""
    addresses: tuple[str, ...] = field(default=(), repr=False)
    """Recipients that are this person."""
    requested: tuple[UUID, ...] = ()
    asked_for: tuple[UUID, ...] = ()

    @property
    def unmistakable_names(self) -> list[str]:
        return [name for name in self.names if len(name) >= SHORTEST_NAME and len(name.split()) > 1]

    @property
    def words(self) -> list[str]:
        """Everything, longest first, so that a word is replaced before its parts."""
        return sorted({*self.names, *self.secrets}, key=len, reverse=True)


def spellings(phone: str, country_code: str) -> set[str]:
    """The ways in which a phone number is written in messages and addresses."""
    found = {phone}
    try:
        canonical = check_address(_CARRIED_BY_PHONE, phone, country_code)
    except InvalidAddress:
        return found
    found |= {canonical, canonical[1:], canonical.replace(f"+{country_code}", "0", 1)}
    return {one for one in found if len(one) >= SHORTEST_PHONE}


def in_json(words: Iterable[str]) -> list[str]:
    """The words as they stand in JSON, where quotes and backslashes are escaped."""
    return [json.dumps(word, ensure_ascii=False)[1:-1] for word in words]


def patterns(words: Iterable[str]) -> list[str]:
    """For LIKE."""
    both = {spelled for word in words for spelled in (word, *in_json([word])) if word}
    return ["%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%" for word in sorted(both)]


@dataclass(frozen=True)
class FoundNotification:
    id: UUID
    action_id: UUID | None
    is_to_person: bool
    may_be_sent: bool
    """It is live, or an operator may redrive it."""


@dataclass(frozen=True)
class FoundAction:
    id: UUID
    is_to_person: bool
    is_running: bool


@dataclass(frozen=True)
class FoundTraces:
    notifications: tuple[FoundNotification, ...]
    actions: tuple[FoundAction, ...]
    channels: tuple[int, ...]
    profiles: tuple[int, ...]

    def with_earlier(self, earlier: "FoundTraces") -> "FoundTraces":
        """Also what was found before, in the state that was found last."""
        return FoundTraces(
            tuple({one.id: one for one in (*earlier.notifications, *self.notifications)}.values()),
            tuple({one.id: one for one in (*earlier.actions, *self.actions)}.values()),
            tuple(sorted({*earlier.channels, *self.channels})),
            tuple(sorted({*earlier.profiles, *self.profiles})),
        )


_PROFILES = text("SELECT id FROM recipient_profiles WHERE user_id = :user_id ORDER BY id")
_CHANNELS = text(
    "SELECT id, target FROM recipient_channels"
    " WHERE profile_id = ANY(:profiles) OR target = ANY(:addresses) ORDER BY id"
)
_OPEN = one_of("d.status", {DeadLetterStatus.OPEN})
# A name alone may be that of somebody else, so it counts only where no task of others is meant.
_ABOUT = """
    ({words} LIKE ANY(:secrets) OR (task_id IS NULL OR task_id = ANY(:tasks)) AND {words} LIKE ANY(:full_names)
     OR task_id = ANY(:tasks) AND {words} LIKE ANY(:names))
"""
_NOTIFICATIONS = text(
    f"""
    SELECT id, action_id, to_person,
           ({one_of("status", LIVE)} OR EXISTS (
               SELECT FROM dead_letters d WHERE d.notification_id = found.id AND {_OPEN})) AS may_be_sent
      FROM (SELECT *, (recipient_user_id = :user_id OR recipient = ANY(:addresses) OR channel_id = ANY(:channels))
                      IS TRUE AS to_person FROM notifications) AS found
     WHERE to_person OR task_id = ANY(:requested)
        OR {_ABOUT.format(words="concat_ws(' ', recipient, subject, body, metadata)")}
    """
)
_ACTIONS = text(
    f"""
    SELECT id, (person_id = :user_id) IS TRUE AS to_person, status = 'RUNNING' AS running FROM actions
     WHERE person_id = :user_id OR task_id = ANY(:requested)
        OR {_ABOUT.format(words="concat_ws(' ', evaluation_key, context, variables, data, steps)")}
    """
)


def find_traces(conn: Connection, traces: PersonTraces) -> FoundTraces:
    """Reads all notifications and actions, because free text may name the person anywhere."""
    profiles = list(conn.execute(_PROFILES, {"user_id": traces.user_id}).scalars())
    addresses = list(traces.addresses)
    channels = [row.id for row in conn.execute(_CHANNELS, {"profiles": profiles, "addresses": addresses})]
    values: dict[str, Any] = {
        "user_id": traces.user_id,
        "addresses": addresses,
        "channels": channels,
        "requested": list(traces.requested),
        "tasks": [*traces.requested, *traces.asked_for],
        **search_values(traces),
    }
    notifications = tuple(
        FoundNotification(row.id, row.action_id, row.to_person, row.may_be_sent)
        for row in conn.execute(_NOTIFICATIONS, values)
    )
    actions = tuple(FoundAction(row.id, row.to_person, row.running) for row in conn.execute(_ACTIONS, values))
    return FoundTraces(notifications, actions, tuple(channels), tuple(profiles))


def search_values(traces: PersonTraces) -> dict[str, list[str]]:
    return {
        "secrets": patterns(traces.secrets),
        "full_names": patterns(traces.unmistakable_names),
        "names": patterns(traces.names),
    }
