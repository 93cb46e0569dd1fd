"""Every code that the console shows has words, so that nobody reads `HAS_A_TASK`."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import pytest

from app.api.openapi import describe
from app.api.views.catalogue import ROUTES
from app.console.assets import STATIC
from app.roster.lists.list_refused import Refusal, RowFlaw

WORDS = set(re.findall(r"^  (\w+):", (STATIC / "console/words_tr.js").read_text(), re.MULTILINE))
SCHEMAS = describe(ROUTES)["components"]["schemas"]
# A field of the API, and what the words of its codes begin with. Codes without words are shown in another way.
SHOWN = [
    ("Offer", "reason", "reason_", set[str]()),
    ("Candidate", "obstacle", "reason_", set[str]()),
    ("Candidate", "askedBefore", "asked_before_", set[str]()),
    ("Task", "status", "status_", set[str]()),
    ("OutcomeBody", "outcome", "outcome_", set[str]()),
    # A student who was skipped is shown with the reason.
    ("Offer", "state", "offer_", {"SKIPPED"}),
]


@pytest.mark.parametrize(("schema", "field", "prefix", "others"), SHOWN)
def test_codes_of_the_api_have_words(schema: str, field: str, prefix: str, others: set[str]) -> None:
    codes = set(_codes(SCHEMAS[schema]["properties"][field])) - others
    assert codes, "the field has no list of codes"
    assert {f"{prefix}{code}" for code in codes} <= WORDS


def test_outcomes_that_can_be_chosen_are_those_of_the_api() -> None:
    form = (STATIC / "console/request/outcome_form.js").read_text()
    chosen = re.search(r"OUTCOMES = \[(.+?)\]", form)
    assert chosen and re.findall(r'"(\w+)"', chosen[1]) == list(_codes(SCHEMAS["OutcomeBody"]["properties"]["outcome"]))


def test_refusals_of_deeds_have_words() -> None:
    refused = {"illegal_step", "not_assigned", "student_unavailable", "offer_accepted", "task_not_found", "try_again"}
    assert {f"problem_{code}" for code in refused} <= WORDS


def _codes(form: Any) -> Iterator[str]:
    if "$ref" in form:
        yield from _codes(SCHEMAS[form["$ref"].rpartition("/")[2]])
    for choice in form.get("anyOf", ()):
        yield from _codes(choice)
    yield from form.get("enum", ())


@pytest.mark.parametrize(("prefix", "codes"), [("refusal_", Refusal), ("flaw_", RowFlaw)])
def test_reasons_of_lists_have_words(prefix: str, codes: type[StrEnum]) -> None:
    words = (STATIC / "console/views/words_tr.js").read_text()
    assert {f"{prefix}{code}" for code in codes} <= set(re.findall(r"^  (\w+):", words, re.MULTILINE))
