"""Which texts and JSON values PostgreSQL can store."""

from typing import Any

import pytest

from app.foundation.storable import Flaw, flaw_of_json, flaw_of_text, made_storable


@pytest.mark.parametrize(
    ("text", "flaw"),
    [("", None), ("çok satırlı\n👵 \x01", None), ("a\0b", Flaw.NUL), ("\ud800", Flaw.SURROGATE)],
)
def test_text(text: str, flaw: Flaw | None) -> None:
    assert flaw_of_text(text) is flaw


JSON: list[tuple[Any, Flaw | None]] = [
    ({"a": [1, 2.5, None, True, "x", {}]}, None),
    ({"a": ["\0"]}, Flaw.NUL),
    ({"\0": 1}, Flaw.NUL),
    ({"\udfff": 1}, Flaw.SURROGATE),
    ([float("nan")], Flaw.NUMBER),
    ([-float("inf")], Flaw.NUMBER),
    ([10**5000], None),
    ([[[]]], None),
    ([[[[]]]], Flaw.DEPTH),
    ({"a": {"b": {"c": {}}}}, Flaw.DEPTH),
]


@pytest.mark.parametrize(("value", "flaw"), JSON)
def test_json_of_three_levels(value: Any, flaw: Flaw | None) -> None:
    assert flaw_of_json(value, deepest=3) is flaw


@pytest.mark.parametrize(
    ("number", "flaw"), [(9, None), (-9, None), (True, None), (10, Flaw.NUMBER), (9.5, Flaw.NUMBER)]
)
def test_numbers_within_a_bound(number: float, flaw: Flaw | None) -> None:
    assert flaw_of_json(number, deepest=1, largest=9) is flaw


@pytest.mark.parametrize(("text", "storable"), [("a\0b", "ab"), ("a\ud800b", "a?b"), ("çığ", "çığ")])
def test_text_is_made_storable(text: str, storable: str) -> None:
    assert made_storable(text) == storable
    assert flaw_of_text(storable) is None
