"""Statements on events: gives positions to new ones, and reads them with what they show now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, TextClause, text

from app.realtime.contract import EventType, Wanted
from app.realtime.event_visibility import EventRow
from app.users.models import Caller, Role

Types = frozenset[EventType] | None
"""None for all."""
KNOWN_TYPES = frozenset(EventType)
SEQUENCE = text("SELECT head, moved, now FROM sequence_events(:most)")
BOUNDS = text("""
SELECT greatest((SELECT max(id) FROM events), (SELECT position FROM event_positions), 0) AS head,
       (SELECT min(id) FROM events) AS oldest, clock_timestamp() AS now
""")
# For the time when no event is kept. Positions are never given twice.
KEEP_HEAD = text("""
INSERT INTO event_positions AS known (id, position) SELECT 1, max(id) FROM events HAVING max(id) IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET position = greatest(known.position, excluded.position)
""")

# Drafts that were moved may still be dead rows, as in `sequence_events`.
OLDEST_DRAFT = text("""
SELECT CAST(extract(epoch FROM clock_timestamp() - d.at) AS float) FROM new_events d
 WHERE d.id > coalesce((SELECT settled FROM event_positions), 0) ORDER BY d.id LIMIT 1
""")

# Of a student, the elders who were asked for count, too: `store/people.py` of matching says the same for an assignment.
INSTITUTIONS = f"""
CASE WHEN e.type = '{EventType.DUTY_CHANGED}' THEN ARRAY(
         SELECT person.institution_id UNION SELECT asker.institution_id FROM offers o
           JOIN tasks asked_for ON asked_for.id = o.task_id JOIN users asker ON asker.id = asked_for.elder_id
          WHERE o.student_id = e.person_id)
     ELSE ARRAY[elder.institution_id] END"""
COLUMNS = "id, day, elder_id, type, at, task_id, person_id, message_id, deadline, reason, on_duty"
SHOWN = """
SELECT e.id, e.day, e.type, e.at, e.task_id, e.elder_id, elder.name AS elder_name, e.person_id,
       person.name AS person_name, e.message_id, e.deadline, e.reason, e.on_duty, t.asked,
       greatest(t.listed - t.asked - t.skipped, 0) AS remaining, t.next_step_at, {institutions} AS institutions
FROM ({events} ORDER BY id LIMIT :most) e
LEFT JOIN tasks t ON t.id = e.task_id
LEFT JOIN users elder ON elder.id = e.elder_id
LEFT JOIN users person ON person.id = e.person_id
ORDER BY e.id
"""
# The day leaves out partitions.
NEW = f"SELECT {COLUMNS} FROM events WHERE day >= :day AND id > :after"
READ_NEW = text(SHOWN.format(events=NEW, institutions=INSTITUTIONS))

PERIOD = "id > :after AND id <= :until AND (CAST(:types AS text[]) IS NULL OR type = ANY(CAST(:types AS text[])))"
# Of a history the statement decides what belongs to an institution, because to find all of each event takes long.
NONE, OWN = "CAST('{}' AS bigint[])", "ARRAY[CAST(:institution AS bigint)]"
PART = f"SELECT {COLUMNS} FROM events WHERE {PERIOD}"


def _history(*conditions: str, institutions: str = NONE) -> TextClause:
    """Each condition has its own index. No event meets two of them."""
    parts = [f"{PART} AND {condition}" for condition in conditions]
    return text(SHOWN.format(events=" UNION ALL ".join(parts), institutions=institutions))


OF_TASK = _history("task_id = :task_id", institutions=INSTITUTIONS)
OF_STUDENT = _history("person_id = :me")
OF_ELDER = _history("elder_id = :me", "person_id = :me")
OWN_MESSAGES = _history(f"person_id = :me AND type = '{EventType.MESSAGE_ARRIVED}'")
OF_ALL = _history(f"type <> '{EventType.MESSAGE_ARRIVED}'")
OF_INSTITUTION_IN_PART = f"""
SELECT {COLUMNS} FROM part
 WHERE type <> '{EventType.MESSAGE_ARRIVED}'
   AND CASE type WHEN '{EventType.DUTY_CHANGED}' THEN person_id IN (SELECT id FROM students)
       ELSE elder_id IN (SELECT id FROM elders) END"""
# The elders and students of a part are looked up together, each once.
OF_INSTITUTION = text(f"""
WITH part AS MATERIALIZED ({PART}),
elders AS (SELECT id FROM users WHERE institution_id = :institution AND id IN (SELECT elder_id FROM part)),
changed AS (SELECT DISTINCT person_id AS id FROM part WHERE type = '{EventType.DUTY_CHANGED}'),
students AS (
    SELECT id FROM users WHERE institution_id = :institution AND id IN (SELECT id FROM changed)
     UNION SELECT changed.id FROM changed JOIN offers o ON o.student_id = changed.id
             JOIN tasks asked_for ON asked_for.id = o.task_id JOIN users asker ON asker.id = asked_for.elder_id
            WHERE asker.institution_id = :institution AND asker.role = 'ELDER')
{SHOWN.format(events=OF_INSTITUTION_IN_PART, institutions=OWN)}""")
# The plan depends on how much belongs to the institution.
PLAN_ANEW = text("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)")
FIRST_PART = 1_000
LAST_PART = 16_000
"""Positions that one statement reads. Each is four times as many as the one before, for those who see few of them."""


@dataclass(frozen=True, slots=True)
class Sequenced:
    head: int | None
    """The newest position; None if another process is giving positions at this moment."""
    moved: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Bounds:
    head: int
    oldest: int | None
    """The first event that is kept; None if none is."""
    now: datetime

    @property
    def day(self) -> date:
        """No later event has an earlier day, even if the clock is set back by some hours."""
        return self.now.date() - timedelta(days=1)

    def is_kept(self, after: int) -> bool:
        """Whether everything after this position can be read."""
        return after == self.head or (self.oldest is not None and after >= self.oldest - 1)


@dataclass(frozen=True, slots=True)
class EventPage:
    rows: Sequence[EventRow]
    """Without those of a type that this version does not know: another version, or somebody by hand, wrote them."""
    until: int | None
    """The last position that was read; None if there was none."""
    day: date | None
    """Of the last event."""
    is_last: bool


def sequence(conn: Connection, most: int) -> Sequenced:
    row = conn.execute(SEQUENCE, {"most": most}).one()
    return Sequenced(row.head, row.moved or 0, row.now)


def bounds(conn: Connection) -> Bounds:
    return Bounds(*conn.execute(BOUNDS).one())


def oldest_draft_s(conn: Connection) -> float:
    """For how long an event waits for its position; 0 if none does."""
    return conn.execute(OLDEST_DRAFT).scalar() or 0.0


def keep_head(conn: Connection) -> None:
    """To be called before events are deleted."""
    conn.execute(KEEP_HEAD)


def read_new(conn: Connection, after: int, day: date, most: int) -> EventPage:
    values = {"after": after, "day": day, "most": most}
    return _page(conn.execute(READ_NEW, values).all(), most)


def read_history(conn: Connection, caller: Caller, wanted: Wanted, after: int, until: int, most: int) -> EventPage:
    """Of one task, an elder or a student: events after a position up to another one. It may hold some that the caller
    does not see."""
    values = _values(wanted.types, after, until, most) | {"me": caller.id}
    if wanted.task_id is not None:
        return _page(conn.execute(OF_TASK, values | {"task_id": wanted.task_id}).all(), most)
    return _page(conn.execute(OF_STUDENT if caller.role is Role.STUDENT else OF_ELDER, values).all(), most)


def read_messages(conn: Connection, person_id: int, after: int, until: int) -> Sequence[EventRow]:
    """The arrivals of a person's messages."""
    values = _values(None, after, until, until - after) | {"me": person_id}
    return _known(conn.execute(OWN_MESSAGES, values).all())


def read_scope(
    conn: Connection, institution_id: int | None, types: Types, after: int, until: int, most: int
) -> EventPage:
    """What all coordinators of an institution see, or of none, in a transaction. Messages are of one person, so they
    are not among it.

    Positions have no gaps, so each statement reads a known number of events, however few of them belong to it."""
    conn.execute(PLAN_ANEW)
    statement = OF_ALL if institution_id is None else OF_INSTITUTION
    values = _values(types, after, until, most) | {"institution": institution_id}
    rows: list[Any] = []
    part = FIRST_PART
    while after < until and len(rows) < most and part <= LAST_PART:
        end = min(after + part, until)
        rows += conn.execute(statement, values | {"after": after, "until": end, "most": most - len(rows)}).all()
        after = end if len(rows) < most else rows[-1].id
        part *= 4
    return EventPage(_known(rows), after, rows[-1].day if rows else None, after >= until)


def _values(types: Types, after: int, until: int, most: int) -> dict[str, Any]:
    return {"after": after, "until": until, "most": most, "types": None if types is None else sorted(types)}


def _page(rows: Sequence[Any], most: int) -> EventPage:
    last = rows[-1] if rows else None
    return EventPage(_known(rows), last and last.id, last and last.day, len(rows) < most)


def _known(rows: Sequence[Any]) -> list[EventRow]:
    return [_event(row) for row in rows if row.type in KNOWN_TYPES]


def _event(row: Any) -> EventRow:
    return EventRow(
        id=row.id,
        type=EventType(row.type),
        at=row.at,
        task_id=row.task_id,
        elder_id=row.elder_id,
        elder_name=row.elder_name,
        person_id=row.person_id,
        person_name=row.person_name,
        message_id=row.message_id,
        deadline=row.deadline,
        reason=row.reason,
        on_duty=row.on_duty,
        asked=row.asked,
        remaining=row.remaining,
        next_step_at=row.next_step_at,
        institutions=frozenset(row.institutions),
    )
