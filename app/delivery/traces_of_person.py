"""Finds what delivery holds of a person: messages to them, and messages about them to others."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
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
AT_ONCE = 500
_CARRIED_BY_PHONE = next(type_ for type_ in NotificationType if traits_of(type_).address is AddressForm.PHONE)


@dataclass(frozen=True)
class PersonTraces:
    """What to search for. Repeated after the person was forgotten, only the ids are left."""

    user_id: int
    full_name: str = field(default="", repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    """Words that others may have too: the full name, the first name, and a phone number that two people share."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Phone numbers, tokens and other words that only this person has."""
    addresses: tuple[str, ...] = field(default=(), repr=False)
    """Recipients that are this person."""
    requested: tuple[UUID, ...] = ()
    asked_for: tuple[UUID, ...] = ()
    namesakes: tuple[int, ...] = ()
    """Other users with the same full name."""
    addresses_of_namesakes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def unmistakable_names(self) -> list[str]:
        name = self.full_name
        return [name] if len(name) >= SHORTEST_NAME and len(name.split()) > 1 else []

    @property
    def only_theirs(self) -> list[str]:
        """Words that nobody else has."""
        return [*self.secrets, *([] if self.namesakes else self.unmistakable_names)]

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
    national = canonical.replace(f"+{country_code}", "0", 1)
    found |= {canonical, canonical[1:], national, *_in_groups(national)}
    return {one for one in found if len(one) >= SHORTEST_PHONE}


def _in_groups(national: str) -> set[str]:
    """As people write a number of ten digits, such as 0555 765 43 21."""
    match = re.fullmatch(r"0(\d{3})(\d{3})(\d\d)(\d\d)", national)
    if match is None:
        return set()
    area, *rest = match.groups()
    groups = {mark.join((area, *rest)) for mark in ("", " ", "-")} | {f"({area}) {' '.join(rest)}"}
    return {zero + one for zero in ("", "0", "0 ") for one in groups}


def in_json(words: Iterable[str]) -> list[str]:
    """The words as they stand in JSON, where quotes and backslashes are escaped."""
    return [json.dumps(word, ensure_ascii=False)[1:-1] for word in words]


def patterns(words: Iterable[str]) -> list[str]:
    """For LIKE. A word that contains another one of them needs no pattern."""
    both = {spelled for word in words for spelled in (word, *in_json([word])) if word}
    both = {one for one in both if not any(other in one for other in both - {one})}
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

    def portions(self) -> Iterator["FoundTraces"]:
        """A coordinator has many messages. Locked in one transaction, they would keep the dispatcher waiting."""
        for start in range(0, max(len(self.notifications), len(self.actions)), AT_ONCE):
            end = start + AT_ONCE
            yield replace(self, notifications=self.notifications[start:end], actions=self.actions[start:end])

    def with_earlier(self, earlier: "FoundTraces") -> "FoundTraces":
        """Also what was found before, in the state that was found last."""
        return FoundTraces(
            tuple({one.id: one for one in (*earlier.notifications, *self.notifications)}.values()),
            tuple({one.id: one for one in (*earlier.actions, *self.actions)}.values()),
            tuple(sorted({*earlier.channels, *self.channels})),
            tuple(sorted({*earlier.profiles, *self.profiles})),
        )


# Also an entry that an operator made without the link to the user.
_PROFILES = text(
    """
    SELECT id FROM recipient_profiles p
     WHERE user_id = :user_id OR user_id IS NULL AND key IS NULL AND name = :full_name AND EXISTS (
           SELECT FROM recipient_channels c WHERE c.profile_id = p.id AND c.target = ANY(:addresses))
     ORDER BY id
    """
)
_CHANNELS = text(
    "SELECT id, target FROM recipient_channels"
    " WHERE profile_id = ANY(:profiles) OR target = ANY(:addresses) ORDER BY id"
)
_OPEN = one_of("d.status", {DeadLetterStatus.OPEN})
# A name alone may be that of somebody else, so it counts only where no task of others is meant, and no namesake.
_ABOUT = """
    ({words} LIKE ANY(:secrets) OR task_id = ANY(:tasks) AND {words} LIKE ANY(:names)
     OR task_id IS NULL AND {words} LIKE ANY(:full_names) AND ({is_to_namesake}) IS NOT TRUE)
"""
_NOTIFICATIONS = text(
    f"""
    SELECT id, action_id, to_person,
           ({one_of("status", LIVE)} OR EXISTS (
               SELECT FROM dead_letters d WHERE d.notification_id = found.id AND {_OPEN})) AS may_be_sent
      FROM (SELECT *, (recipient_user_id = :user_id OR recipient = ANY(:addresses) OR channel_id = ANY(:channels))
                      IS TRUE AS to_person FROM notifications) AS found
     WHERE to_person OR task_id = ANY(:requested)
        OR {
        _ABOUT.format(
            words="concat_ws(' ', recipient, subject, body, metadata)",
            is_to_namesake="recipient_user_id = ANY(:namesakes) OR recipient = ANY(:addresses_of_namesakes)",
        )
    }
    """
)
_ACTIONS = text(
    f"""
    SELECT id, (person_id = :user_id) IS TRUE AS to_person, status = 'RUNNING' AS running FROM actions
     WHERE person_id = :user_id OR task_id = ANY(:requested)
        OR {
        _ABOUT.format(
            words="concat_ws(' ', evaluation_key, context, variables, data, steps)",
            is_to_namesake="person_id = ANY(:namesakes)",
        )
    }
    """
)


_OWN_ADDRESSES = text(
    """
    SELECT DISTINCT c.target FROM recipient_channels c JOIN recipient_profiles p ON p.id = c.profile_id
     WHERE p.user_id = :user_id AND p.key IS NULL AND c.target <> '' AND NOT EXISTS (
           SELECT FROM recipient_channels o JOIN recipient_profiles q ON q.id = o.profile_id
            WHERE o.target = c.target AND q.user_id <> :user_id)
     ORDER BY 1
    """
)
_HAVE_ADDRESS = text(
    """
    SELECT EXISTS (
        SELECT FROM recipient_channels c JOIN recipient_profiles p ON p.id = c.profile_id
         WHERE c.target = ANY(:addresses) AND p.user_id <> :user_id AND c.retired_at IS NULL)
    """
)


def own_addresses(conn: Connection, user_id: int) -> list[str]:
    """The addresses in the person's entries of the directory that nobody else has."""
    return list(conn.execute(_OWN_ADDRESSES, {"user_id": user_id}).scalars())


def is_address_of_others(conn: Connection, addresses: Iterable[str], user_id: int) -> bool:
    values = {"addresses": sorted(addresses), "user_id": user_id}
    return conn.execute(_HAVE_ADDRESS, values).scalar_one()


def find_traces(conn: Connection, traces: PersonTraces) -> FoundTraces:
    """Reads all notifications and actions, because free text may name the person anywhere."""
    addresses = list(traces.addresses)
    person = {"user_id": traces.user_id, "full_name": traces.full_name, "addresses": addresses}
    profiles = list(conn.execute(_PROFILES, person).scalars())
    channels = [row.id for row in conn.execute(_CHANNELS, {"profiles": profiles, "addresses": addresses})]
    values: dict[str, Any] = {
        "user_id": traces.user_id,
        "addresses": addresses,
        "channels": channels,
        "requested": list(traces.requested),
        **search_values(traces),
    }
    notifications = tuple(
        FoundNotification(row.id, row.action_id, row.to_person, row.may_be_sent)
        for row in conn.execute(_NOTIFICATIONS, values)
    )
    actions = tuple(FoundAction(row.id, row.to_person, row.running) for row in conn.execute(_ACTIONS, values))
    return FoundTraces(notifications, actions, tuple(channels), tuple(profiles))


def search_values(traces: PersonTraces) -> dict[str, Any]:
    return {
        "tasks": [*traces.requested, *traces.asked_for],
        "namesakes": list(traces.namesakes),
        "addresses_of_namesakes": list(traces.addresses_of_namesakes),
        "secrets": patterns(traces.secrets),
        "full_names": patterns(traces.unmistakable_names),
        "only_theirs": patterns(traces.only_theirs),
        "names": patterns(traces.names),
    }
