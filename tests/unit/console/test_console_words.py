"""Every code that the console shows has words, so that nobody reads `HAS_A_TASK`."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from app.api.access import KindConsumers, Open
from app.api.openapi import describe
from app.api.routing import Route
from app.api.views.catalogue import ROUTES
from app.console.assets import STATIC
from app.delivery.contract import SubjectKind
from app.jobs import scripts
from app.ops import parts
from app.roster.lists.list_refused import Refusal, RowFlaw
from app.users.models import Role

WORDS = set(re.findall(r"^  (\w+):", (STATIC / "console/words_tr.js").read_text(), re.MULTILINE))
WORDS_OF_VIEWS = set(re.findall(r"^  (\w+):", (STATIC / "console/views/words_tr.js").read_text(), re.MULTILINE))
SCHEMAS = describe(ROUTES)["components"]["schemas"]
SHIPPED_SCRIPTS = sorted(module.name for module in pkgutil.iter_modules(scripts.__path__))
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


def test_deeds_that_the_audit_trail_names_have_words() -> None:
    written = (STATIC / "console/views/audit/deed_names.js").read_text()
    deeds = dict(re.findall(r'^  "(.+?)": "(\w+)",$', written, re.MULTILINE))
    routes = {route.name for route in ROUTES if route.is_witnessed and _is_for_staff(route)}
    assert routes and routes <= deeds.keys()
    assert {f"deed_{key}" for key in deeds.values()} <= WORDS_OF_VIEWS


def test_kinds_that_the_audit_trail_is_filtered_by_are_those_of_the_api() -> None:
    written = (STATIC / "console/views/audit/audit_query.js").read_text()
    offered = re.search(r"KINDS = \[(.+?)\]", written, re.DOTALL)
    assert offered and re.findall(r'"(\w+)"', offered[1]) == [*SubjectKind]
    assert {f"subject_{kind}" for kind in SubjectKind} <= WORDS_OF_VIEWS


def test_parts_of_the_service_and_their_figures_have_words() -> None:
    """Figures are named in the words, so a renamed one would be left as `{longestS}`."""
    source = Path(parts.__file__).read_text()
    written = (STATIC / "console/views/words_tr.js").read_text()
    told = dict(re.findall(r'^  figures_of_(\w+): "(.+)",$', written, re.MULTILINE))
    assert told.keys() == set(re.findall(r'_part\("(\w+)"', source))
    assert set(re.findall(r"\{(\w+)\}", " ".join(told.values()))) == set(re.findall(r'"(\w+)": ', source))


@pytest.mark.parametrize("name", SHIPPED_SCRIPTS)
def test_shipped_script_and_its_parameters_have_turkish_words(name: str) -> None:
    written = (STATIC / "console/views/jobs/script_words_tr.js").read_text()
    block = re.search(rf"^  {name}: \{{$(.+?)^  \}},$", written, re.MULTILINE | re.DOTALL)
    assert block is not None
    module = importlib.import_module(f"app.jobs.scripts.{name}")
    [params] = [one for key, one in vars(module).items() if key.endswith("Params")]
    assert re.findall(r"^      (\w+): \[", block[1], re.MULTILINE) == list(params.model_fields)
    assert all(f"    {part}:" in block[1] for part in ("title", "summary", "description"))


def _is_for_staff(route: Route) -> bool:
    who = route.who
    return not isinstance(who, Open | KindConsumers) and (Role.COORDINATOR in who or Role.ADMIN in who)


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
