"""Who a step goes to, and in which order they are tried. Pure: it looks at the directory as it was read.

A step for ROUTES goes to the profiles it is routed to, or else to those of the device, the lowest `priority` first. Of
each profile the channels of the wanted type are tried, in the order in which they were entered, then those of each
type in the step's fallback. The next profile has its turn only if the step has a fallback or several routes: a single
route names who is meant, and the profiles of a device are alternatives, of which the first that can be reached is it.

A step for PERSON goes to what the directory has verified for this user, type by type. For types that a user can be
reached by without an entry (the app, the phone number on file), that is tried where there is none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.delivery.actions.run import NO_RECIPIENT
from app.delivery.actions.steps import Found, Nobody, Resolution, Special, StepRun, Target
from app.delivery.messages.submit import USER, user_in
from app.delivery.messages.values import NotificationType
from app.delivery.plans.models import Audience

RETIRED = "RECIPIENT_RETIRED"
PUSH, IN_APP, SMS, AUDIT = (
    type_.channel_type
    for type_ in (NotificationType.PUSH, NotificationType.IN_APP, NotificationType.SMS, NotificationType.AUDIT)
)


@dataclass(frozen=True)
class ProfileChannel:
    """A channel of a profile."""

    id: int
    channel_type: str
    target: str = field(repr=False)
    is_usable: bool = True
    """Enabled and verified."""
    is_retired: bool = False
    address_kind: str | None = None


@dataclass(frozen=True)
class Profile:
    id: int
    entries: tuple[ProfileChannel, ...] = ()
    priority: int = 0
    is_on: bool = True
    is_retired: bool = False
    locale: str = "tr"
    user_id: int | None = None


@dataclass(frozen=True)
class ProfileRoute:
    profile: Profile
    channel_type: str | None = None
    """Instead of the step's."""


@dataclass(frozen=True)
class Recipient:
    id: int
    locale: str = "tr"
    phone: str | None = field(default=None, repr=False)
    profiles: tuple[Profile, ...] = ()


@dataclass(frozen=True)
class Directory:
    people: Mapping[int, Recipient] = field(default_factory=dict[int, Recipient])
    routes: Mapping[tuple[int, int], Sequence[ProfileRoute]] = field(
        default_factory=dict[tuple[int, int], Sequence[ProfileRoute]]
    )
    """By plan and step."""
    devices: Mapping[str, Sequence[Profile]] = field(default_factory=dict[str, Sequence[Profile]])


@dataclass(frozen=True)
class About:
    """Whom an action is about."""

    plan_id: int
    person_id: int | None = None
    device_id: str | None = None


def resolve(step: StepRun, about: About, directory: Directory) -> Resolution:
    if step.channel_type == AUDIT:
        return Found((Target(AUDIT, f"plan:{about.plan_id}"),))
    if step.audience is Audience.PERSON:
        person = directory.people.get(about.person_id or 0)
        return _found(_of_person(step, person) if person is not None else ())
    routes = directory.routes.get((about.plan_id, step.order), ())
    if not routes:
        routes = [ProfileRoute(profile) for profile in directory.devices.get(about.device_id or "", ())]
        return _of_routes(step, routes, is_routed=False)
    return _of_routes(step, routes, is_routed=True)


def _of_person(step: StepRun, person: Recipient) -> Iterator[Target]:
    profiles = [profile for profile in _in_order(person.profiles) if profile.is_on and not profile.is_retired]
    for channel_type in (step.channel_type, *step.fallback):
        explicit = [
            _target(entry, person.locale, person.id) for profile in profiles for entry in _usable(profile, channel_type)
        ]
        yield from explicit or _implicit(channel_type, person)


def _implicit(channel_type: str, person: Recipient) -> list[Target]:
    if channel_type in (PUSH, IN_APP):
        return [Target(channel_type, f"{USER}{person.id}", person.locale, person.id)]
    if channel_type == SMS and person.phone:
        return [Target(SMS, person.phone, person.locale, person.id)]
    return []


def _of_routes(step: StepRun, routes: Sequence[ProfileRoute], *, is_routed: bool) -> Resolution:
    there = [route for route in routes if not route.profile.is_retired]
    if routes and not there:
        return Nobody(RETIRED)
    on = [route for route in there if route.profile.is_on]
    if there and not on:
        return Special.ALL_OFF
    on.sort(key=lambda route: (route.profile.priority, route.profile.id))
    groups = [group for group in ([*_of_route(step, route)] for route in on) if group]
    if not groups:
        return Nobody(RETIRED if _had_one(step, on) else NO_RECIPIENT)
    goes_on = step.fallback or (is_routed and len(routes) > 1)
    return _found(target for group in (groups if goes_on else groups[:1]) for target in group)


def _of_route(step: StepRun, route: ProfileRoute) -> Iterator[Target]:
    for channel_type in (route.channel_type or step.channel_type, *step.fallback):
        for entry in _usable(route.profile, channel_type):
            yield _target(entry, route.profile.locale)


def _had_one(step: StepRun, routes: Iterable[ProfileRoute]) -> bool:
    """Whether somebody took away the only address there was."""
    return any(
        entry.is_retired and entry.channel_type in (route.channel_type or step.channel_type, *step.fallback)
        for route in routes
        for entry in route.profile.entries
    )


def _in_order(profiles: Iterable[Profile]) -> list[Profile]:
    return sorted(profiles, key=lambda profile: (profile.priority, profile.id))


def _usable(profile: Profile, channel_type: str) -> Iterator[ProfileChannel]:
    return (
        entry
        for entry in profile.entries
        if entry.channel_type == channel_type and entry.is_usable and not entry.is_retired
    )


def _target(entry: ProfileChannel, locale: str, person_id: int | None = None) -> Target:
    """A token is a phone's and not a person's: with a user beside it, it would go to all of their phones."""
    named = user_in(entry.channel_type.upper(), entry.target)
    user_id = person_id if named is None and entry.channel_type != PUSH else named
    return Target(entry.channel_type, entry.target, locale, user_id, entry.id, entry.address_kind)


def _found(targets: Iterable[Target]) -> Resolution:
    """The same address by two ways is one target."""
    distinct: dict[tuple[str, str], Target] = {}
    for target in targets:
        distinct.setdefault((target.channel_type, target.recipient), target)
    return Found(tuple(distinct.values())) if distinct else Nobody(NO_RECIPIENT)
