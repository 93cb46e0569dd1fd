"""The shipped words are those that matching has said all along, and every shipped step has its words."""

from datetime import timedelta

import pytest

from app.delivery.models import NotificationType
from app.delivery.plans.rendering import Words, render
from app.delivery.plans.shipped import PLANS, PROFILES, TEMPLATES
from app.matching.words import UNKNOWN_PHONE, Message, say, time_left

SAID = [message for message in Message if message is not Message.OFFER_WITHDRAWN]
BY_KEY = {plan.key: plan for plan in PLANS}


def _key(message: Message) -> str:
    return f"matching.{message.value.lower()}"


@pytest.mark.parametrize("locale", ["tr", "en"])
@pytest.mark.parametrize("phone", ["+905550100002", None])
@pytest.mark.parametrize("message", SAID)
def test_the_words_are_the_same(message: Message, phone: str | None, locale: str):
    variables = {"student": "Ahmet", "elder": "Ayşe", "phone": phone, "minutes": 10, "seconds": 600}
    written = render(TEMPLATES[_key(message)][locale], variables)
    said = say(
        message,
        locale,
        student="Ahmet",
        elder="Ayşe",
        phone=phone or UNKNOWN_PHONE[locale],
        time_left=time_left(timedelta(minutes=10), locale),
    )
    assert written == Words(said.subject, said.body)


@pytest.mark.parametrize("locale", ["tr", "en"])
@pytest.mark.parametrize("seconds", [1, 30, 59, 60, 119, 600])
def test_the_time_to_answer_follows_the_setting(seconds: int, locale: str):
    written = render(TEMPLATES["matching.offer"][locale], {"minutes": seconds // 60, "seconds": seconds})
    assert written.body == say(Message.OFFER, locale, time_left=time_left(timedelta(seconds=seconds), locale)).body


@pytest.mark.parametrize("message", Message)
def test_every_message_has_a_plan(message: Message):
    assert BY_KEY[_key(message)].steps


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.key)
def test_every_step_has_words_and_somebody_to_go_to(plan):
    types = {type_.channel_type for type_ in NotificationType}
    for step in plan.steps:
        assert {step.channel_type, *step.fallback} <= types
        assert step.template_key is None or TEMPLATES[step.template_key].keys() == {"tr", "en"}
        assert step.profile_key is None or step.profile_key in PROFILES
    assert [step.template_key for step in BY_KEY["matching.offer_withdrawn"].steps] == [None]
