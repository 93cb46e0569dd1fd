"""Reads the audit trail, newest first: who has done what, to whom or what, and when.

The order is that of the times, and of the ids where times are equal. A clock that is set back separates the two; the
order of times is the one that an index, a filter by time and the cursor can share.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, TextClause, select, text

from app.delivery.channels.audit_trail import ENTRY_COLUMNS, AuditEntry
from app.delivery.channels.models import audit_entries
from app.foundation.pages import Page, page_of, parse_number


class SubjectKind(StrEnum):
    """What a deed can be about."""

    USER = "USER"
    TASK = "TASK"
    PLAN = "PLAN"
    STEP = "STEP"
    ROUTE = "ROUTE"
    TEMPLATE = "TEMPLATE"
    PROFILE = "PROFILE"
    CHANNEL = "CHANNEL"
    DEAD_LETTER = "DEAD_LETTER"
    JOB = "JOB"
    ROSTER_RUN = "ROSTER_RUN"
    CONSUMER = "CONSUMER"


WITH_UUIDS = frozenset({SubjectKind.TASK, SubjectKind.DEAD_LETTER, SubjectKind.JOB})

# As paths, addresses of entries, tables and columns name them: see `audit_subjects` in migration 0018.
_NAMES: dict[SubjectKind, tuple[str, ...]] = {
    SubjectKind.USER: ("users", "user", "students", "student"),
    SubjectKind.TASK: ("tasks", "task"),
    SubjectKind.PLAN: ("action-plans", "plan"),
    SubjectKind.STEP: ("action-plan-steps", "steps"),
    SubjectKind.ROUTE: ("action-routes",),
    SubjectKind.TEMPLATE: ("message-templates", "templates"),
    SubjectKind.PROFILE: ("recipient-profiles",),
    SubjectKind.CHANNEL: ("recipient-channels", "channel"),
    SubjectKind.DEAD_LETTER: ("dead-letters",),
    SubjectKind.JOB: ("jobs",),
    SubjectKind.ROSTER_RUN: ("runs", "run"),
    SubjectKind.CONSUMER: ("roster-consumers", "consumers"),
}


@dataclass(frozen=True)
class AuditFilter:
    """None leaves a part of it out."""

    author: str | None = None
    deed: str | None = None
    about: tuple[SubjectKind, str] | None = None
    """A kind and the id of one of it."""
    since: datetime | None = None
    until: datetime | None = None


EVERY_ENTRY = AuditFilter()

_entries = audit_entries.c
_BEFORE = text("(written_at, id) < (SELECT last.written_at, last.id FROM audit_entries AS last WHERE last.id = :shown)")
_ABOUT = text("audit_subjects(recipient, metadata) && CAST(:subjects AS text[])")


def list_audit_entries(
    conn: Connection, filter_: AuditFilter = EVERY_ENTRY, *, cursor: str | None = None, limit: int = 50
) -> Page[AuditEntry]:
    rows = conn.execute(list_query(filter_, cursor, limit + 1)).all()
    return page_of(rows, limit, lambda row: AuditEntry(*row))


def list_query(filter_: AuditFilter, cursor: str | None, most: int) -> "Select[*tuple[Any, ...]]":
    query = select(text(ENTRY_COLUMNS)).select_from(audit_entries).where(*_conditions(filter_))
    if cursor is not None:
        query = query.where(_BEFORE.bindparams(shown=parse_number(cursor)))
    return query.order_by(_entries.written_at.desc(), _entries.id.desc()).limit(most)


def _conditions(filter_: AuditFilter) -> list[ColumnElement[bool] | TextClause]:
    conditions: list[ColumnElement[bool] | TextClause] = []
    if filter_.author is not None:
        conditions.append(_entries.author == filter_.author)
    if filter_.deed is not None:
        conditions.append(_entries.subject == filter_.deed)
    if filter_.since is not None:
        conditions.append(_entries.written_at >= filter_.since)
    if filter_.until is not None:
        conditions.append(_entries.written_at < filter_.until)
    if filter_.about is not None:
        kind, id_ = filter_.about
        conditions.append(_ABOUT.bindparams(subjects=[f"{name}:{id_}" for name in _NAMES[kind]]))
    return conditions
