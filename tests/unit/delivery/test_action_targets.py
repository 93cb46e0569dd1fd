"""The targets of a step, and their order."""

import pytest

from app.delivery.actions.steps import Found, Resolution, StepRun, TargetFault, Unresolved
from app.delivery.actions.targets import About, Directory, Profile, ProfileChannel, ProfileRoute, Recipient, resolve
from app.delivery.plans.models import Audience

PERSON, ROUTES = Audience.PERSON, Audience.ROUTES


def entries(*types: str, first: int = 1) -> tuple[ProfileChannel, ...]:
    return tuple(ProfileChannel(id_, type_, f"{type_}-{id_}") for id_, type_ in enumerate(types, first))


def addresses(found: Resolution) -> list[str]:
    assert isinstance(found, Found)
    return [target.recipient for target in found.targets]


def routed(step: StepRun, *routes: ProfileRoute, institution_id: int | None = None) -> Resolution:
    return resolve(step, About(21, institution_id=institution_id), Directory(routes={(21, step.order): routes}))


def by_device(step: StepRun, *profiles: Profile) -> Resolution:
    return resolve(step, About(21, device_id="D1"), Directory(devices={"D1": profiles}))


def to_person(step: StepRun, person: Recipient) -> Resolution:
    return resolve(step, About(21, person.id), Directory({person.id: person}))


# ---- routes ----


def test_example_of_the_seed() -> None:
    five = Profile(5, entries("email", "whatsapp"))
    assert addresses(routed(StepRun(1, "whatsapp"), ProfileRoute(five))) == ["whatsapp-2"]


def test_profiles_are_ordered_by_priority_and_then_by_age() -> None:
    three, four, five = (
        Profile(id_, entries("sms", first=id_), priority) for id_, priority in ((3, 2), (4, 1), (5, 1))
    )
    found = routed(StepRun(1, "sms"), ProfileRoute(three), ProfileRoute(five), ProfileRoute(four))
    assert addresses(found) == ["sms-4", "sms-5", "sms-3"]


def test_channels_of_one_recipient_come_before_the_next_recipient() -> None:
    one, two = Profile(1, entries("email", "sms", "email")), Profile(2, entries("sms", "email", first=7))
    step = StepRun(1, "sms", fallback=("email",))
    assert addresses(routed(step, ProfileRoute(one), ProfileRoute(two))) == [
        "sms-2",
        "email-1",
        "email-3",
        "sms-7",
        "email-8",
    ]


def test_channel_of_a_route_replaces_that_of_the_step() -> None:
    assert addresses(routed(StepRun(1, "sms"), ProfileRoute(Profile(1, entries("sms", "email")), "email"))) == [
        "email-2"
    ]


@pytest.mark.parametrize("entry", [ProfileChannel(1, "sms", "x", is_usable=False), ProfileChannel(1, "email", "x")])
def test_unusable_channels_are_ignored(entry: ProfileChannel) -> None:
    assert routed(StepRun(1, "sms"), ProfileRoute(Profile(1, (entry,)))) == TargetFault("NO_RECIPIENT")


def test_switched_off_recipients_are_skipped() -> None:
    off = ProfileRoute(Profile(1, entries("sms"), is_on=False))
    assert routed(StepRun(1, "sms"), off) is Unresolved.ALL_OFF
    assert routed(StepRun(1, "sms"), off, ProfileRoute(Profile(9, is_retired=True))) is Unresolved.ALL_OFF
    assert addresses(routed(StepRun(1, "sms"), off, ProfileRoute(Profile(2, entries("sms", first=2))))) == ["sms-2"]


def test_profile_of_an_institution_hears_nothing_about_the_elders_of_others() -> None:
    own, other, shared = (
        ProfileRoute(Profile(id_, entries("sms", first=id_), institution_id=institution_id))
        for id_, institution_id in ((1, 34), (2, 35), (3, None))
    )
    assert addresses(routed(StepRun(1, "sms"), own, other, shared, institution_id=34)) == ["sms-1", "sms-3"]
    assert addresses(routed(StepRun(1, "sms"), own, other, shared)) == ["sms-3"]
    assert routed(StepRun(1, "sms"), own, institution_id=35) is Unresolved.ALL_OFF


def test_person_who_is_not_active_is_skipped() -> None:
    gone = Recipient(7, phone="+905550000001", is_active=False)
    assert to_person(StepRun(1, "push", PERSON, fallback=("sms",)), gone) is Unresolved.ALL_OFF


def test_retired_recipients_have_their_own_error_code() -> None:
    assert routed(StepRun(1, "sms"), ProfileRoute(Profile(1, entries("sms"), is_retired=True))) == TargetFault(
        "RECIPIENT_RETIRED"
    )
    gone = Profile(1, (ProfileChannel(1, "sms", "x", is_retired=True),))
    assert routed(StepRun(1, "sms"), ProfileRoute(gone)) == TargetFault("RECIPIENT_RETIRED")
    assert routed(StepRun(1, "email"), ProfileRoute(gone)) == TargetFault("NO_RECIPIENT")


def test_without_a_route_the_profiles_of_the_device_are_used() -> None:
    one, two = Profile(1, entries("sms"), priority=5), Profile(2, entries("sms", "email", first=2), priority=1)
    assert addresses(by_device(StepRun(1, "sms"), one, two)) == ["sms-2"], "the first profile that can be reached"
    assert addresses(by_device(StepRun(1, "sms", fallback=("email",)), one, two)) == ["sms-2", "email-3", "sms-1"]
    assert by_device(StepRun(1, "sms")) == TargetFault("NO_RECIPIENT")
    assert resolve(StepRun(1, "sms"), About(21), Directory()) == TargetFault("NO_RECIPIENT")


def test_profile_without_a_channel_does_not_hide_the_next() -> None:
    assert addresses(by_device(StepRun(1, "sms"), Profile(1), Profile(2, entries("sms")))) == ["sms-1"]


def test_repeated_address_is_one_target() -> None:
    one = Profile(
        1, (ProfileChannel(1, "sms", "+90555"), ProfileChannel(2, "sms", "+90666"), ProfileChannel(3, "sms", "+90555"))
    )
    assert addresses(routed(StepRun(1, "sms"), ProfileRoute(one), ProfileRoute(one, "sms"))) == ["+90555", "+90666"]


def test_push_target_is_a_token_or_a_user() -> None:
    profile = Profile(
        1, (ProfileChannel(1, "push", "token", address_kind="FID"), ProfileChannel(2, "push", "user:7")), user_id=9
    )
    found = routed(StepRun(1, "push"), ProfileRoute(profile))
    assert isinstance(found, Found)
    assert [(target.user_id, target.address_kind) for target in found.targets] == [(None, "FID"), (7, None)]


# ---- a person ----


def test_person_is_reached_by_app_and_phone_number() -> None:
    step = StepRun(1, "push", PERSON, fallback=("sms", "in_app", "email", "whatsapp"))
    found = to_person(step, Recipient(7, "en", "0555 000 00 01"))
    assert addresses(found) == ["user:7", "0555 000 00 01", "user:7"]
    assert isinstance(found, Found)
    assert {target.user_id for target in found.targets} == {7}
    assert {target.locale for target in found.targets} == {"en"}


def test_verified_addresses_come_before_those_of_the_user() -> None:
    profile = Profile(1, entries("sms", "email"), user_id=7)
    step = StepRun(1, "sms", PERSON, fallback=("email", "push"))
    found = to_person(step, Recipient(7, phone="+905550000001", profiles=(profile,)))
    assert addresses(found) == ["sms-1", "email-2", "user:7"]
    off = Recipient(7, phone="+905550000001", profiles=(Profile(1, entries("sms"), is_on=False),))
    assert addresses(to_person(StepRun(1, "sms", PERSON), off)) == ["+905550000001"]


def test_person_without_an_address_has_no_recipient() -> None:
    assert to_person(StepRun(1, "sms", PERSON), Recipient(7)) == TargetFault("NO_RECIPIENT")
    assert to_person(StepRun(1, "email", PERSON), Recipient(7, phone="+905550000001")) == TargetFault("NO_RECIPIENT")
    assert resolve(StepRun(1, "push", PERSON), About(21, 7), Directory()) == TargetFault("NO_RECIPIENT")


@pytest.mark.parametrize("audience", Audience)
def test_audit_needs_no_recipient(audience: Audience) -> None:
    assert addresses(resolve(StepRun(1, "audit", audience), About(21), Directory())) == ["plan:21"]
