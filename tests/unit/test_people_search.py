"""How what was typed becomes a search for people."""

import pytest

from app.users.people_search import fold, search_people


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("Işıl Şahin", "isil sahin"),
        ("İBRAHİM ÖĞÜÇ", "ibrahim oguc"),
        ("Ayşe-Nur O'Neill", "ayse nur o neill"),
        ("José Ünlü", "jose unlu"),
    ],
)
def test_letters_are_folded(name: str, folded: str) -> None:
    assert fold(name) == folded


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("isil", "'isil':*"),
        ("  Işıl   ŞAH ", "'isil':* & 'sah':*"),
        ("Ahmet 0555 010 20", "'ahmet':* & ('055501020':* | '55501020':*)"),
        ("+90 (555) 010-20", "'9055501020':*"),
        ("b2 x'y\\z", "'b2':* & 'x':* & 'y':* & 'z':*"),
    ],
)
def test_every_word_and_all_digits_together_have_to_be_found(typed: str, query: str) -> None:
    assert search_people(typed).values["search"] == query


@pytest.mark.parametrize(("typed", "id_"), [("17", 17), ("0017", 17), ("Ahmet 17", None), ("9" * 30, None)])
def test_digits_alone_may_be_an_id(typed: str, id_: int | None) -> None:
    assert search_people(typed).values.get("search_id") == id_


@pytest.mark.parametrize("typed", ["", "--", "'"])
def test_nothing_to_search_for_finds_nobody(typed: str) -> None:
    assert search_people(typed).condition == "false"
