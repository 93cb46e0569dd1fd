"""Templates as they are kept, found by key and language."""

from sqlalchemy import Connection, select

from app.delivery.words.models import message_templates
from app.delivery.words.rendering import Words


def find_words(conn: Connection, key: str, locale: str) -> Words | None:
    """A template in the language of whoever will read it, or else in Turkish, or in the only one there is."""
    templates = message_templates.c
    query = select(templates.subject, templates.body).where(templates.key == key, templates.retired_at.is_(None))
    best_first = query.order_by((templates.locale == locale).desc(), (templates.locale == "tr").desc())
    row = conn.execute(best_first.limit(1)).one_or_none()
    return None if row is None else Words(row.subject, row.body)
