"""What is wrong with a field is said in our words, whatever check of the library has refused it."""

from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core.core_schema import ErrorType

from app.foundation.field_sentences import sentence

OUR_OWN = {"value_error", "assertion_error"}
CONTEXT = dict.fromkeys(("min_length", "max_length", "multiple_of", "gt", "ge", "lt", "le", "expected"), 7)


@pytest.mark.parametrize("kind", sorted({*get_args(ErrorType)} - OUR_OWN))
def test_no_sentence_is_that_of_the_library(kind: str) -> None:
    said = sentence({"type": kind, "msg": "RAW", "ctx": CONTEXT})
    assert "RAW" not in said and "{" not in said
    assert said.split()[0] in {"must", "is", "holds", "does"}


@pytest.mark.parametrize(
    ("kind", "context", "said"),
    [
        ("missing", {}, "is required"),
        ("string_too_short", {"min_length": 1}, "must not be empty"),
        ("string_too_short", {"min_length": 3}, "must have at least 3 characters"),
        ("less_than_equal", {"le": 90.0}, "must be at most 90.0"),
        ("enum", {"expected": "'EMAIL', 'SMS' or 'PUSH'"}, "must be one of EMAIL, SMS or PUSH"),
        ("a_kind_of_a_later_version", {}, "does not have the form that is asked for"),
    ],
)
def test_sentence_names_the_limit(kind: str, context: dict[str, object], said: str) -> None:
    assert sentence({"type": kind, "msg": "RAW", "ctx": context}) == said


def test_sentence_of_a_check_of_ours_stays() -> None:
    class Checked(BaseModel):
        at: int

    error = ValidationError.from_exception_data(
        "Checked", [{"type": "value_error", "loc": ("at",), "input": 1, "ctx": {"error": ValueError("is too late")}}]
    )
    assert sentence(error.errors()[0]) == "is too late"
