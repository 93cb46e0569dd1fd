"""Reads message templates, chooses their language, and renders each text once."""

import json
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

import structlog
from sqlalchemy import Connection, text

from app.delivery.words.rendering import RenderFailed, TemplateInvalid, Words, render
from app.delivery.words.shipped_templates import TEMPLATES

log = structlog.get_logger(__name__)

FALLBACK_LOCALE = "tr"

Templates = Mapping[tuple[str, str], Words]
"""By key and locale."""

_READ = text("SELECT key, locale, subject, body FROM message_templates WHERE key = ANY(:keys) AND retired_at IS NULL")


def read_templates(conn: Connection, keys: Collection[str]) -> Templates:
    if not keys:
        return {}
    rows = conn.execute(_READ, {"keys": list(keys)})
    return {(row.key, row.locale): Words(row.subject, row.body) for row in rows}


def choose_template(templates: Templates, key: str, locale: str) -> Words | None:
    """The template in the recipient's language, or else in Turkish."""
    return templates.get((key, locale)) or templates.get((key, FALLBACK_LOCALE))


class TemplateFault(StrEnum):
    """Error codes of templates that cannot be rendered."""

    UNKNOWN_TEMPLATE = "UNKNOWN_TEMPLATE"
    TEMPLATE_RENDER_FAILED = "TEMPLATE_RENDER_FAILED"


class BatchRenderer:
    """Renders a template once for all actions of a batch that have the same variables, such as a batch of offers.

    Variables are compared as JSON. For Python's `==`, 1, 1.0 and True are equal, but they are rendered differently.
    """

    def __init__(self, templates: Templates) -> None:
        self._templates = templates
        self._rendered: dict[tuple[str, str, str], Words | TemplateFault] = {}

    def render(self, key: str, locale: str, variables: Mapping[str, Any]) -> Words | TemplateFault:
        cache_key = key, locale, json.dumps(variables)
        found = self._rendered.get(cache_key)
        if found is None:
            found = self._rendered[cache_key] = self._render(key, locale, variables)
        return found

    def _render(self, key: str, locale: str, variables: Mapping[str, Any]) -> Words | TemplateFault:
        """An operator may have retired the shipped template, or misspelt a variable in it. The message is sent in the
        shipped words then, because people wait for it."""
        words = _filled(self._templates, key, locale, variables)
        if isinstance(words, TemplateFault) and key in TEMPLATES:
            shipped = {(key, language): template for language, template in TEMPLATES[key].items()}
            instead = _filled(shipped, key, locale, variables)
            if isinstance(instead, Words):
                log.warning("shipped_words_used", template_key=key, locale=locale, fault=words.value)
                return instead
        return words


def _filled(templates: Templates, key: str, locale: str, variables: Mapping[str, Any]) -> Words | TemplateFault:
    template = choose_template(templates, key, locale)
    if template is None:
        return TemplateFault.UNKNOWN_TEMPLATE
    try:
        return render(template, variables)
    except (RenderFailed, TemplateInvalid):
        return TemplateFault.TEMPLATE_RENDER_FAILED
