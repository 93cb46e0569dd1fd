"""Compares what readers of events saw with the rows of `events`, and these rows with the tasks and offers.

Who may see what is said here again, from docs/events.md and not from the code that is checked.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from app.users.models import Role
from tests.torture.checker import LATE_S, Conn, Violation, ask, some
from tests.torture.event_readers import EventReader, SeenEvent
from tests.torture.fault_windows import Window, broken_s

# `must` says what a reader must have seen, and `may` what a reader may have seen besides: of students on and off duty,
# coordinators of an institution see those who were asked for its elders, as far as they were asked at that time.
STAFF_ONLY = "('STUDENT_SKIPPED', 'TASK_RESOLVED')"
IN_INSTITUTION = """
e.task_id IS NOT NULL AND (SELECT u.institution_id FROM users u WHERE u.id = e.elder_id) = %(institution_id)s"""
ASKED_THERE = """
e.type = 'DUTY_CHANGED' AND EXISTS (
    SELECT FROM users s WHERE s.id = e.person_id AND s.institution_id = %(institution_id)s
    UNION ALL SELECT FROM offers o JOIN tasks t ON t.id = o.task_id JOIN users u ON u.id = t.elder_id
    WHERE o.student_id = e.person_id AND u.institution_id = %(institution_id)s)"""
OWN_MESSAGE = "e.type = 'MESSAGE_ARRIVED' AND e.person_id = %(me)s"
OF_STUDENT = f"e.person_id = %(me)s AND e.type NOT IN {STAFF_ONLY}"
OF_ELDER = f"e.elder_id = %(me)s AND e.type NOT IN {STAFF_ONLY} OR {OWN_MESSAGE}"
OF_EVERYTHING = f"e.type <> 'MESSAGE_ARRIVED' OR {OWN_MESSAGE}"
OF_INSTITUTION = f"{IN_INSTITUTION} OR {OWN_MESSAGE}"

COMMON = frozenset(
    {"id", "type", "at", "taskId", "status", "asked", "remaining", "nextStepAt", "deadline", "messageId"}
)
FIELDS: Mapping[Role, frozenset[str]] = {
    Role.COORDINATOR: COMMON | {"studentId", "studentName", "elderId", "elderName", "reason", "onDuty"},
    Role.ELDER: COMMON | {"studentId", "studentName"},
    Role.STUDENT: COMMON | {"studentId", "onDuty"},
}
SURNAME = "Yılmaz"
"""Of everybody in the torture."""
SHOWN_BEFORE_ACCEPT = {"TASK_ASSIGNED", "TASK_STARTED", "TASK_COMPLETED", "TASK_CANCELLED", "TASK_TIMED_OUT"}

TOLD = {
    "a position that is missing": """
        SELECT count(*), max(id), (SELECT position FROM event_positions) FROM events
        HAVING count(*) <> max(id) OR max(id) < (SELECT position FROM event_positions)""",
    "an event that never got a position": "SELECT id, type FROM new_events",
    "a task that was not told exactly once": """
        SELECT t.id FROM tasks t LEFT JOIN events e ON e.task_id = t.id AND e.type = 'TASK_CREATED'
        GROUP BY t.id HAVING count(e.id) <> 1""",
    "a task whose last event is not its status": """
        SELECT t.id, t.status, last.type FROM tasks t LEFT JOIN LATERAL (
            SELECT e.type FROM events e WHERE e.task_id = t.id AND e.type IN ('TASK_CREATED', 'TASK_ASSIGNED',
                   'TASK_STARTED', 'TASK_COMPLETED', 'TASK_CANCELLED', 'TASK_TIMED_OUT', 'TASK_RELEASED')
            ORDER BY e.id DESC LIMIT 1) last ON true
        WHERE coalesce(last.type, '') <> 'TASK_' || t.status
          AND NOT (t.status = 'PENDING' AND last.type IN ('TASK_CREATED', 'TASK_RELEASED'))""",
    "an offer whose end was not told exactly once": """
        SELECT o.id, o.state, count(e.id) FROM offers o LEFT JOIN events e
            ON e.task_id = o.task_id AND e.person_id = o.student_id AND e.type = 'OFFER_' || o.state
        WHERE o.state IN ('REJECTED', 'EXPIRED', 'WITHDRAWN') GROUP BY o.id HAVING count(e.id) <> 1""",
    "an event that comes before the one that it follows": """
        SELECT a.id, a.type FROM events a JOIN events b ON b.task_id = a.task_id AND b.type = 'TASK_CREATED'
        WHERE a.id < b.id""",
}


@dataclass(frozen=True)
class Expected:
    must: Mapping[int, tuple[str, str | None]]
    """Type and task by id."""
    may: frozenset[int]


def expected(conn: Conn, reader: EventReader) -> Expected:
    must = {Role.STUDENT: OF_STUDENT, Role.ELDER: OF_ELDER}.get(reader.role, OF_EVERYTHING)
    may = "false"
    if reader.role is Role.COORDINATOR and reader.institution_id is not None:
        must, may = OF_INSTITUTION, ASKED_THERE
    values = {"me": reader.person.id, "institution_id": reader.institution_id, "began": reader.began or 0}
    question = f"SELECT e.id, e.type, e.task_id::text, {must}, {may} FROM events e WHERE e.id > %(began)s"
    rows = conn.execute(question.encode(), values).fetchall()
    return Expected(
        {id_: (type_, task_id) for id_, type_, task_id, is_must, _ in rows if is_must},
        frozenset(id_ for id_, *_, is_may in rows if is_may),
    )


def have_seen_all(conn: Conn, readers: Sequence[EventReader]) -> bool:
    """An api that has just started may not have given positions yet."""
    drafts = conn.execute("SELECT FROM new_events LIMIT 1").fetchall()
    return not drafts and all(_has_seen_all(conn, reader) for reader in readers)


def _has_seen_all(conn: Conn, reader: EventReader) -> bool:
    newest = max(expected(conn, reader).must, default=0)
    return reader.began is not None and (reader.last or 0) >= newest


def check_readers(conn: Conn, readers: Sequence[EventReader], windows: Sequence[Window]) -> list[Violation]:
    found = ask(conn, TOLD)
    for reader in readers:
        found += check_reader(expected(conn, reader), reader)
        found += _check_lateness(reader, windows)
    return found


def check_reader(known: Expected, reader: EventReader) -> list[Violation]:
    ids = [event.id for event in reader.seen]
    who = f"{reader.role} {reader.person.id}"
    missed = sorted(known.must.keys() - set(ids))
    strange = sorted(set(ids) - known.must.keys() - known.may)
    disorder = [f"{after} after {before}" for before, after in pairwise(ids) if after <= before]
    changed = [
        str(event.fields)
        for event in reader.seen
        if event.id in known.must and known.must[event.id] != (event.fields["type"], event.fields.get("taskId"))
    ]
    return [
        *some("an event that a reader missed", [f"{who}: {id_} {known.must[id_][0]}" for id_ in missed]),
        *some("an event that a reader must not see", [f"{who}: {id_}" for id_ in strange]),
        *some("an event that came twice or out of order", [f"{who}: {text}" for text in disorder]),
        *some("an event that differs from its row", [f"{who}: {text}" for text in changed]),
        *some("a field that a reader must not see", [f"{who}: {text}" for text in _leaks(reader)]),
        *some("an answer that a reader must not get", [f"{who}: {text}" for text in reader.wrong]),
    ]


def _leaks(reader: EventReader) -> list[str]:
    return [str(event.fields) for event in reader.seen if _shows_too_much(reader.role, event.fields)]


def _shows_too_much(role: Role, fields: Mapping[str, Any]) -> bool:
    is_early = "studentId" in fields and fields["type"] not in SHOWN_BEFORE_ACCEPT
    return (
        not fields.keys() <= FIELDS[role]
        or "+90555" in str(fields)
        or (role is Role.ELDER and (is_early or SURNAME in str(fields)))
    )


def late_s(reader: EventReader) -> list[tuple[SeenEvent, float]]:
    """Of each event that came while the reader was connected, the time since its transaction wrote it."""
    found: list[tuple[SeenEvent, float]] = []
    for event in reader.seen:
        written_at = datetime.fromisoformat(event.fields["at"]).timestamp()
        if written_at > event.connected_at:
            found.append((event, event.came_at - written_at))
    return found


@dataclass(frozen=True)
class EventFigures:
    seen: int
    streams: int
    ended: Mapping[str, int]
    """Streams that the service ended, by reason."""
    late_p50_s: float
    late_most_s: float
    """Outside fault windows, from the change until it was read, on open streams."""

    def shown(self) -> str:
        ended = ", ".join(f"{reason} {count}" for reason, count in sorted(self.ended.items()))
        return (
            f"{self.seen} read over {self.streams} streams, of which the service ended: {ended or 'none'}; outside"
            f" fault windows after {self.late_p50_s:.3f} s, at most {self.late_most_s:.3f} s"
        )


def figures(readers: Sequence[EventReader], windows: Sequence[Window]) -> EventFigures:
    counts = sum((reader.counts for reader in readers), Counter[str]())
    late = undisturbed_lateness_s(readers, windows) or [0.0]
    ended = {name: count for name, count in counts.items() if not name.isdigit()}
    return EventFigures(sum(len(one.seen) for one in readers), counts["200"], ended, late[len(late) // 2], late[-1])


def undisturbed_lateness_s(readers: Sequence[EventReader], windows: Sequence[Window]) -> list[float]:
    return sorted(
        late
        for reader in readers
        for event, late in late_s(reader)
        if broken_s(windows, event.came_at - late, event.came_at) == 0
    )


def _check_lateness(reader: EventReader, windows: Sequence[Window]) -> list[Violation]:
    details: list[str] = []
    for event, late in late_s(reader):
        excused = broken_s(windows, event.came_at - late, event.came_at)
        if late - excused > LATE_S:
            details.append(f"{event.fields}: {late:.1f} s late, of which {excused:.1f} s excused")
    return some("an event that came too late", details)
