"""The texts of notices, and the first names in them."""

import pytest

from app.delivery.plans.shipped_plans import PLANS
from app.delivery.words.rendering import Words, render
from app.delivery.words.shipped_templates import TEMPLATES
from app.matching.notices import NoticeKind
from app.matching.rules.visibility import first_name


def text_of(message: NoticeKind, locale: str = "tr", **variables: object) -> str:
    return render(TEMPLATES[message.plan][locale], variables).body


def test_offer() -> None:
    text = text_of(NoticeKind.OFFER, minutes=10, seconds=600)
    assert text == "Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var."


def test_on_the_way() -> None:
    assert text_of(NoticeKind.ON_THE_WAY, student="Ahmet") == "Ahmet yola çıktı!"


def test_nobody_found() -> None:
    assert text_of(NoticeKind.NOBODY_FOUND) == "Maalesef şu an uygun öğrenci bulunamadı."


@pytest.mark.parametrize(
    ("seconds", "turkish", "english"),
    [
        (600, "10 dakikan", "10 minutes"),
        (60, "1 dakikan", "1 minute"),
        (119, "1 dakikan", "1 minute"),
        (59, "59 saniyen", "59 seconds"),
        (1, "1 saniyen", "1 second"),
        (3600, "60 dakikan", "60 minutes"),
    ],
)
def test_time_to_answer_follows_the_setting(seconds: int, turkish: str, english: str) -> None:
    time = {"minutes": seconds // 60, "seconds": seconds}
    assert turkish in text_of(NoticeKind.OFFER, **time)
    assert english in text_of(NoticeKind.OFFER, "en", **time)


@pytest.mark.parametrize("message", NoticeKind)
def test_every_notice_has_a_plan_and_templates(message: NoticeKind) -> None:
    [plan] = [plan for plan in PLANS if plan.key == message.plan]
    assert plan.steps[0].template_key == (None if message is NoticeKind.OFFER_WITHDRAWN else message.plan)


def test_name_with_braces_is_only_a_name() -> None:
    assert text_of(NoticeKind.ON_THE_WAY, student="{{ phone }}") == "{{ phone }} yola çıktı!"
    assert render(Words("", "{{ student }}"), {"student": "{% for"}).body == "{% for"


@pytest.mark.parametrize(
    ("name", "first"), [("Ayşe Nur Yılmaz", "Ayşe"), ("Ahmet", "Ahmet"), ("  Ali  Can ", "Ali"), ("", ""), ("  ", "  ")]
)
def test_first_word_of_a_name(name: str, first: str) -> None:
    assert first_name(name) == first
