"""Resolves the targets of a step, in the order in which they are tried. Pure: it uses the directory that was read.

A step for ROUTES goes to the profiles of its routes, or else to the profiles of the device; the lowest `priority` is
first. Within a profile, the channels of the step's type are tried in the order of their ids, then the channels of each
type in the step's fallback. The next profile is tried only if the step has a fallback or several routes. Otherwise only
the first profile that has a target is used: a single route names the recipient, and the profiles of a device are
alternatives.

A step for PERSON goes to the user's verified channels in the directory, type by type. Some types reach a user without a
channel in the directory: push and in-app by the id of the user, and SMS by their phone number. They are tried if the
directory has no channel of the type.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.delivery.actions.error_codes import NO_RECIPIENT, RECIPIENT_RETIRED
from app.delivery.actions.steps import Found, Resolution, StepRun, Target, TargetFault, Unresolved
from app.delivery.messages.submit import USER, user_in
from app.delivery.messages.traits import ReachedBy, traits_of
from app.delivery.messages.values import NotificationType
from app.delivery.plans.models import Audience

PUSH, AUDIT = NotificationType.PUSH.channel_type, NotificationType.AUDIT.channel_type


@dataclass(frozen=True)
class ProfileChannel:
    """A channel of a profile, with the states that decide whether it can be a target."""

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
    channels: tuple[ProfileChannel, ...] = ()
    priority: int = 0
    is_on: bool = True
    is_retired: bool = False
    locale: str = "tr"
    user_id: int | None = None
    institution_id: int | None = None
    """Its own institution, or that of its user. None for a profile that serves all."""


@dataclass(frozen=True)
class ProfileRoute:
    profile: Profile
    channel_type: str | None = None
    """Overrides the channel type of the step."""


@dataclass(frozen=True)
class Recipient:
    """A user, with their profiles."""

    id: int
    locale: str = "tr"
    phone: str | None = field(default=None, repr=False)
    profiles: tuple[Profile, ...] = ()
    is_active: bool = True
    is_elder: bool = False
    institution_id: int | None = None


@dataclass(frozen=True)
class Directory:
    people: Mapping[int, Recipient] = field(default_factory=dict[int, Recipient])
    routes: Mapping[tuple[int, int], Sequence[ProfileRoute]] = field(
        default_factory=dict[tuple[int, int], Sequence[ProfileRoute]]
    )
    """By plan id and step order."""
    devices: Mapping[str, Sequence[Profile]] = field(default_factory=dict[str, Sequence[Profile]])


@dataclass(frozen=True)
class About:
    """The plan of an action, and the person or device that the action is about."""

    plan_id: int
    person_id: int | None = None
    device_id: str | None = None
    institution_id: int | None = None


def resolve(step: StepRun, about: About, directory: Directory) -> Resolution:
    if step.channel_type == AUDIT:
        return Found((Target(AUDIT, f"plan:{about.plan_id}"),))
    if step.audience is Audience.PERSON:
        person = directory.people.get(about.person_id or 0)
        if person is not None and not person.is_active:
            return Unresolved.ALL_OFF
        return _found(_person_targets(step, person) if person is not None else ())
    routes = directory.routes.get((about.plan_id, step.order), ())
    if not routes:
        routes = [ProfileRoute(profile) for profile in directory.devices.get(about.device_id or "", ())]
        return _route_targets(step, routes, about, is_routed=False)
    return _route_targets(step, routes, about, is_routed=True)


def _person_targets(step: StepRun, person: Recipient) -> Iterator[Target]:
    profiles = [profile for profile in _in_order(person.profiles) if profile.is_on and not profile.is_retired]
    for channel_type in (step.channel_type, *step.fallback):
        explicit = [
            _target(channel, person.locale, person.id)
            for profile in profiles
            for channel in _usable(profile, channel_type)
        ]
        yield from explicit or _implicit(channel_type, person)


def _implicit(channel_type: str, person: Recipient) -> list[Target]:
    match traits_of(channel_type).reached_by:
        case ReachedBy.USER_ID:
            return [Target(channel_type, f"{USER}{person.id}", person.locale, person.id)]
        case ReachedBy.PHONE_NUMBER if person.phone:
            return [Target(channel_type, person.phone, person.locale, person.id)]
        case _:
            return []


def _route_targets(step: StepRun, routes: Sequence[ProfileRoute], about: About, *, is_routed: bool) -> Resolution:
    in_use = [route for route in routes if not route.profile.is_retired]
    if routes and not in_use:
        return TargetFault(RECIPIENT_RETIRED)
    # The profile of an institution gets nothing about the elders of another one.
    on = [
        route
        for route in in_use
        if route.profile.is_on and route.profile.institution_id in (None, about.institution_id)
    ]
    if in_use and not on:
        return Unresolved.ALL_OFF
    on.sort(key=lambda route: (route.profile.priority, route.profile.id))
    groups = [group for group in ([*_targets_of(step, route)] for route in on) if group]
    if not groups:
        return TargetFault(RECIPIENT_RETIRED if _has_retired_channel(step, on) else NO_RECIPIENT)
    tries_next_profile = step.fallback or (is_routed and len(routes) > 1)
    return _found(target for group in (groups if tries_next_profile else groups[:1]) for target in group)


def _targets_of(step: StepRun, route: ProfileRoute) -> Iterator[Target]:
    for channel_type in (route.channel_type or step.channel_type, *step.fallback):
        for channel in _usable(route.profile, channel_type):
            yield _target(channel, route.profile.locale)


def _has_retired_channel(step: StepRun, routes: Iterable[ProfileRoute]) -> bool:
    """True if a profile has a retired channel of the type of its step or of a fallback."""
    return any(
        channel.is_retired and channel.channel_type in (route.channel_type or step.channel_type, *step.fallback)
        for route in routes
        for channel in route.profile.channels
    )


def _in_order(profiles: Iterable[Profile]) -> list[Profile]:
    return sorted(profiles, key=lambda profile: (profile.priority, profile.id))


def _usable(profile: Profile, channel_type: str) -> Iterator[ProfileChannel]:
    return (
        channel
        for channel in profile.channels
        if channel.channel_type == channel_type and channel.is_usable and not channel.is_retired
    )


def _target(channel: ProfileChannel, locale: str, person_id: int | None = None) -> Target:
    """A push token belongs to one phone, so its target has no user: with a user, the push would go to all their
    phones."""
    named = user_in(channel.channel_type.upper(), channel.target)
    user_id = person_id if named is None and channel.channel_type != PUSH else named
    return Target(channel.channel_type, channel.target, locale, user_id, channel.id, channel.address_kind)


def _found(targets: Iterable[Target]) -> Found | TargetFault:
    """Removes duplicates: an address that was found twice is one target."""
    distinct: dict[tuple[str, str], Target] = {}
    for target in targets:
        distinct.setdefault((target.channel_type, target.recipient), target)
    return Found(tuple(distinct.values())) if distinct else TargetFault(NO_RECIPIENT)
