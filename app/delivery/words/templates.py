"""Reads message templates, and chooses the language of a text."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, text

from app.delivery.words.rendering import Words

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
    """In the reader's language, or else in Turkish."""
    return templates.get((key, locale)) or templates.get((key, FALLBACK_LOCALE))
