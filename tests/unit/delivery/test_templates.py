"""The choice of a template, and that equal texts are rendered once."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from app.delivery.words.rendering import Words
from app.delivery.words.templates import BatchRenderer, TemplateFault, choose_template

TURKISH, ENGLISH = Words("", "{{ n }} mesaj"), Words("", "{{ n }} messages")
TEMPLATES = {("a", "tr"): TURKISH, ("a", "en"): ENGLISH, ("b", "tr"): TURKISH, ("c", "en"): ENGLISH}


@pytest.mark.parametrize(
    ("key", "locale", "template"),
    [("a", "en", ENGLISH), ("a", "tr", TURKISH), ("b", "en", TURKISH), ("c", "tr", None), ("d", "tr", None)],
)
def test_template_is_in_the_readers_language_or_in_turkish(key: str, locale: str, template: Words | None) -> None:
    assert choose_template(TEMPLATES, key, locale) is template


def test_equal_variables_are_rendered_once() -> None:
    renderer = BatchRenderer(TEMPLATES)
    assert renderer.render("a", "tr", {"n": 1}) is renderer.render("a", "tr", {"n": 1})


@pytest.mark.parametrize("variables", [{"n": 1}, {"n": 1.0}, {"n": True}, {"n": "1"}])
def test_variables_that_are_written_differently_are_not_equal(variables: dict[str, Any]) -> None:
    renderer = BatchRenderer(TEMPLATES)
    for other in ({"n": 1}, {"n": 1.0}, {"n": True}, {"n": "1"}):
        renderer.render("a", "en", other)
    assert renderer.render("a", "en", variables) == Words("", f"{variables['n']} messages")


def test_changed_variables_are_rendered_anew() -> None:
    renderer, variables = BatchRenderer(TEMPLATES), {"n": 1}
    renderer.render("a", "en", variables)
    variables["n"] = 2
    assert renderer.render("a", "en", variables) == Words("", "2 messages")


def test_shipped_words_stand_in_for_those_that_cannot_be_filled() -> None:
    edited = {("matching.started", "tr"): Words("", "{{ ogrenci }} geldi."), ("matching.started", "en"): ENGLISH}
    renderer = BatchRenderer(edited)
    with capture_logs() as logs:
        for locale, body in (("tr", "Ahmet geldi."), ("en", "Ahmet is with you.")):
            assert renderer.render("matching.started", locale, {"student": "Ahmet"}).body == body
    assert [(one["event"], one["fault"]) for one in logs] == [("shipped_words_used", "TEMPLATE_RENDER_FAILED")] * 2
    assert BatchRenderer({}).render("matching.started", "tr", {"student": "Ahmet"}).body == "Ahmet geldi."
    assert renderer.render("matching.started", "tr", {"n": 1}) is TemplateFault.TEMPLATE_RENDER_FAILED


def test_failed_rendering_is_a_fault() -> None:
    renderer = BatchRenderer(TEMPLATES)
    assert renderer.render("a", "tr", {}) is TemplateFault.TEMPLATE_RENDER_FAILED
    assert renderer.render("d", "tr", {}) is TemplateFault.UNKNOWN_TEMPLATE
