"""Templates of the SMS gateway are compiled and tried at the start."""

import json

import pytest

from app.settings.gateway_templates import (
    GatewayRenderFailed,
    InvalidTemplate,
    answer_template,
    render,
    request_template,
)

VALUES = {"id": "1", "to": "+905551234567", "text": 'a "b"\n<ş>', "priority": "LOW", "token": "t"}


def test_default_request_is_json_with_all_values() -> None:
    filled = render(request_template(None, "application/json"), VALUES)
    assert json.loads(filled) == {"id": "1", "to": "+905551234567", "text": 'a "b"\n<ş>', "priority": "LOW"}


def test_text_is_escaped_only_by_the_template() -> None:
    template = request_template("{{ text }}|{{ text | urlencode }}|{{ 'x' ~ (text | tojson) }}")
    assert render(template, VALUES) == 'a "b"\n<ş>|a%20%22b%22%0A%3C%C5%9F%3E|x"a \\"b\\"\\n<ş>"'


@pytest.mark.parametrize(
    ("source", "content_type", "error"),
    [
        ("{{ text", "text/plain", "line 1"),
        ("a\n{% if %}", "text/plain", "line 2"),
        ("{{ text | nosuch }}", "text/plain", "nosuch"),
        ("{% if priority == 'NOW' %}{{ text | nosuch }}{% endif %}", "text/plain", "nosuch"),
        ("{% if priority is odder %}{% endif %}", "text/plain", "odder"),
        ("{{ txt }} {{ too }}", "text/plain", "uses too, txt; the known names are id, priority, text, to, token"),
        ("{{ range(3) }}", "text/plain", "uses range"),
        ("{{ text.nosuch }}", "text/plain", "cannot be filled"),
        ("{{ to.__class__ }}", "text/plain", "cannot be filled"),
        ("{{ 1 // 0 }}", "text/plain", "cannot be filled"),
        ('{"text": "{{ text }}"}', "application/json", "tojson"),
        ('{"text": "{{ text }}"}', "application/json; charset=utf-8", "tojson"),
        ('{"text": "{{ text }}"}', "application/vnd.api+json", "tojson"),
        ('{"text": "{{ text | tojson }}"}', "application/json", "tojson"),
        ('{"text": {{ text | tojson }}', "application/json", "tojson"),
    ],
)
def test_invalid_request_template_is_refused(source: str, content_type: str, error: str) -> None:
    with pytest.raises(InvalidTemplate, match=error):
        request_template(source, content_type)


@pytest.mark.parametrize("source", ["{{ status", "{{ body }}", "{% if nosuch %}SENT{% endif %}"])
def test_invalid_answer_template_is_refused(source: str) -> None:
    with pytest.raises(InvalidTemplate):
        answer_template(source)


def test_missing_field_of_an_answer_renders_empty() -> None:
    template = answer_template("SENT {{ json.a.b.c }}")
    assert template is not None
    assert render(template, {"json": {}, "status": 200}) == "SENT "
    assert render(template, {"json": None, "status": 200}) == "SENT "


def test_error_does_not_quote_the_values() -> None:
    template = answer_template("{{ 1 // status }}")
    assert template is not None
    with pytest.raises(GatewayRenderFailed) as caught:
        render(template, {"status": 0})
    assert str(caught.value) == ""
    assert caught.value.__suppress_context__
