"""The two templates that adapt the product to an SMS gateway: one writes the request, the other reads the answer.
Operators write them in the settings, so they are checked at start, before a mistake can make a notification fail.
"""

import json
from collections.abc import Mapping
from email.message import Message
from typing import Any

from jinja2 import ChainableUndefined, StrictUndefined, Template, TemplateSyntaxError, Undefined, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

REQUEST_NAMES = frozenset({"id", "to", "text", "priority", "token"})
ANSWER_NAMES = frozenset({"status", "json", "text", "headers"})
DEFAULT_REQUEST = """\
{"id": {{ id | tojson }}, "to": {{ to | tojson }}, "text": {{ text | tojson }}, "priority": {{ priority | tojson }}}"""

# Values with special characters: a template that does not encode them fails at start, not later in production.
_HARD_TO_ENCODE = {
    "id": "0190a1b2-0000-7000-8000-000000000000",
    "to": "+905551234567",
    "text": 'Ayşe\'nin "acil" çağrısı\n\\ & <100% = 1+1>',
    "priority": "NORMAL",
    "token": 'to"ken',
}


class InvalidTemplate(ValueError):
    pass


class GatewayRenderFailed(Exception):
    """Has no message, because the message would quote the notification or the answer."""


def request_template(source: str | None, content_type: str = "") -> Template:
    template = _compile(source or DEFAULT_REQUEST, REQUEST_NAMES, StrictUndefined)
    try:
        filled = render(template, _HARD_TO_ENCODE)
    except GatewayRenderFailed:
        raise InvalidTemplate("cannot be filled with a message") from None
    if _is_json(content_type) and not _is_valid_json(filled):
        raise InvalidTemplate(
            "does not become JSON with every text; write {{ text | tojson }} without quotes around it"
        )
    return template


def answer_template(source: str | None) -> Template | None:
    return _compile(source, ANSWER_NAMES, ChainableUndefined) if source else None


def render(template: Template, values: Mapping[str, Any]) -> str:
    try:
        return template.render(values)
    except Exception:
        raise GatewayRenderFailed from None


def _compile(source: str, names: frozenset[str], undefined: type[Undefined]) -> Template:
    environment = ImmutableSandboxedEnvironment(autoescape=False, undefined=undefined)
    environment.globals.clear()
    # Jinja's own filter also escapes characters for HTML.
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    try:
        tree = environment.parse(source)
        unknown = sorted(meta.find_undeclared_variables(tree) - names)
        template = environment.from_string(source)
    except TemplateSyntaxError as error:
        raise InvalidTemplate(f"is not a Jinja template: {error.message} (line {error.lineno})") from None
    if unknown:
        raise InvalidTemplate(f"uses {', '.join(unknown)}; the known names are {', '.join(sorted(names))}")
    # Jinja looks for a filter inside a branch only when the branch is rendered, which may be months later.
    missing = sorted({node.name for node in tree.find_all(nodes.Filter)} - environment.filters.keys())
    missing += sorted({node.name for node in tree.find_all(nodes.Test)} - environment.tests.keys())
    if missing:
        raise InvalidTemplate(f"uses a filter or a test that does not exist: {', '.join(missing)}")
    return template


def _is_json(content_type: str) -> bool:
    header = Message()
    header["Content-Type"] = content_type
    return header.get_content_subtype().split("+")[-1] == "json"


def _is_valid_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
