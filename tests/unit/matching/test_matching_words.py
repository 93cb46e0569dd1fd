"""The sentences people read, letter by letter."""

import re
from datetime import timedelta

import pytest

from app.matching.words import WORDS, Message, first_name, say, time_left

TEN_MINUTES = timedelta(seconds=600)


def test_the_offer() -> None:
    words = say(Message.OFFER, "tr", time_left=time_left(TEN_MINUTES, "tr"))
    assert words.body == "Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var."


def test_on_the_way() -> None:
    assert say(Message.ON_THE_WAY, "tr", student="Ahmet").body == "Ahmet yola çıktı!"


def test_nobody_found() -> None:
    assert say(Message.NOBODY_FOUND, "tr").body == "Maalesef şu an uygun öğrenci bulunamadı."


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
def test_the_time_to_answer_follows_the_setting(seconds: int, turkish: str, english: str) -> None:
    assert time_left(timedelta(seconds=seconds), "tr") == turkish
    assert time_left(timedelta(seconds=seconds), "en") == english


@pytest.mark.parametrize("message", Message)
def test_both_languages_say_the_same_things(message: Message) -> None:
    turkish, english = WORDS[message]["tr"], WORDS[message]["en"]
    assert set(re.findall(r"{\w+}", turkish.body)) == set(re.findall(r"{\w+}", english.body))
    assert bool(turkish.body) == bool(english.body) == (message is not Message.OFFER_WITHDRAWN)


def test_turkish_is_for_everybody_who_did_not_choose_english() -> None:
    assert say(Message.CANCELLED, "tr") == say(Message.CANCELLED, "de") != say(Message.CANCELLED, "en")


def test_a_name_with_braces_is_only_a_name() -> None:
    assert say(Message.ON_THE_WAY, "tr", student="{phone}").body == "{phone} yola çıktı!"


@pytest.mark.parametrize(
    ("name", "first"), [("Ayşe Nur Yılmaz", "Ayşe"), ("Ahmet", "Ahmet"), ("  Ali  Can ", "Ali"), ("", ""), ("  ", "  ")]
)
def test_the_first_word_of_a_name(name: str, first: str) -> None:
    assert first_name(name) == first
