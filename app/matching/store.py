"""Tasks and offers in PostgreSQL, statement by statement.

Lock order, everywhere: tasks by id, then students by id, then whatever was decided is read again. Every write
that decides something is conditional, and the rows it returns are what happened.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.matching.candidates import THIS_MONTH
from app.matching.errors import Overtaken
from app.matching.states import HELD, OfferState, TaskStatus
from app.users.models import LatLon

MONTH = THIS_MONTH.format(zone=":time_zone")

TASK_COLUMNS = """
t.id, t.status, t.elder_id, t.student_id, t.note, t.created_at, t.search_until, t.next_step_at, t.waiting, t.listed,
t.asked, t.skipped, t.assigned_at, t.idempotency_key, ST_Y(t.location::geometry) AS lat,
ST_X(t.location::geometry) AS lon,
clock_timestamp() AS read_at
"""


@dataclass(frozen=True)
class Task:
    id: UUID
    status: TaskStatus
    elder_id: int
    student_id: int | None
    note: str | None
    spot: LatLon
    created_at: datetime
    search_until: datetime
    next_step_at: datetime | None
    waiting: bool
    listed: int
    asked: int
    skipped: int
    assigned_at: datetime | None
    idempotency_key: str | None
    read_at: datetime
    """The database's time when this was read."""

    @property
    def is_held(self) -> bool:
        return self.status in HELD


@dataclass(frozen=True)
class Offer:
    id: int
    task_id: UUID
    student_id: int
    state: OfferState
    deadline: datetime | None
    overdue: bool


@dataclass(frozen=True)
class Fact:
    """What a candidate looks like when their turn comes."""

    task_id: UUID
    student_id: int
    obstacle: str | None
    """Why this student is passed by for good; None when they may be asked."""
    seen_before: bool
    busy_until: datetime | None
    completed: int
    distance_m: float | None


@dataclass(frozen=True)
class Pick:
    task_id: UUID
    student_id: int
    rank: int
    completed: int
    distance_m: float


@dataclass(frozen=True)
class Skip:
    task_id: UUID
    student_id: int
    reason: str
    completed: int
    distance_m: float | None


def _task(row: Any) -> Task:
    return Task(
        id=row.id,
        status=TaskStatus(row.status),
        elder_id=row.elder_id,
        student_id=row.student_id,
        note=row.note,
        spot=LatLon(row.lat, row.lon),
        created_at=row.created_at,
        search_until=row.search_until,
        next_step_at=row.next_step_at,
        waiting=row.waiting,
        listed=row.listed,
        asked=row.asked,
        skipped=row.skipped,
        assigned_at=row.assigned_at,
        idempotency_key=row.idempotency_key,
        read_at=row.read_at,
    )


LOCK_TASKS = f"SELECT {TASK_COLUMNS} FROM tasks t WHERE t.id = ANY(:ids) ORDER BY t.id FOR NO KEY UPDATE"


def lock_tasks(conn: Connection, ids: Iterable[UUID], *, skip_locked: bool = False) -> list[Task]:
    statement = text(LOCK_TASKS + (" SKIP LOCKED" if skip_locked else ""))
    return [_task(row) for row in conn.execute(statement, {"ids": sorted(ids)})]


def read_tasks(conn: Connection, ids: Iterable[UUID]) -> list[Task]:
    statement = f"SELECT {TASK_COLUMNS} FROM tasks t WHERE t.id = ANY(:ids) ORDER BY t.id"
    return [_task(row) for row in conn.execute(text(statement), {"ids": list(ids)})]


def unknown_tasks(conn: Connection, ids: set[UUID]) -> set[UUID]:
    """Those that do not exist, rather than being locked by somebody."""
    if not ids:
        return ids
    rows = conn.execute(text("SELECT id FROM tasks WHERE id = ANY(:ids)"), {"ids": list(ids)})
    return ids - {row.id for row in rows}


def lock_task(conn: Connection, task_id: UUID) -> Task | None:
    return next(iter(lock_tasks(conn, [task_id])), None)


def lock_students(conn: Connection, ids: Iterable[int]) -> None:
    """One call in a transaction: students locked in two goes could meet another transaction's two goes."""
    conn.execute(
        text("SELECT id FROM students WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE"), {"ids": sorted(set(ids))}
    )


INSERT_TASK = text("""
INSERT INTO tasks (id, status, elder_id, note, location, created_at, updated_at, search_until, next_step_at,
                   listed, idempotency_key)
SELECT :id, 'PENDING', :elder_id, CAST(:note AS text), ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography, now,
       now, now + :search_limit, now, :listed, CAST(:idempotency_key AS text)
FROM (SELECT clock_timestamp() AS now) clock
ON CONFLICT DO NOTHING
RETURNING id
""")


def insert_task(
    conn: Connection,
    *,
    task_id: UUID,
    elder_id: int,
    note: str | None,
    spot: LatLon,
    listed: int,
    search_limit: timedelta,
    idempotency_key: str | None,
) -> bool:
    """False when the elder has an open task already, or used this idempotency key before."""
    row = conn.execute(
        INSERT_TASK,
        {
            "id": task_id,
            "elder_id": elder_id,
            "note": note,
            "lat": spot.lat,
            "lon": spot.lon,
            "listed": listed,
            "search_limit": search_limit,
            "idempotency_key": idempotency_key,
        },
    ).one_or_none()
    return row is not None


def find_open_task(conn: Connection, elder_id: int) -> Task | None:
    statement = f"""
    SELECT {TASK_COLUMNS} FROM tasks t
    WHERE t.elder_id = :elder_id AND t.status IN ('PENDING', 'ASSIGNED', 'STARTED')"""
    row = conn.execute(text(statement), {"elder_id": elder_id}).one_or_none()
    return None if row is None else _task(row)


def find_task_by_key(conn: Connection, elder_id: int, key: str) -> Task | None:
    statement = f"SELECT {TASK_COLUMNS} FROM tasks t WHERE t.elder_id = :elder_id AND t.idempotency_key = :key"
    row = conn.execute(text(statement), {"elder_id": elder_id, "key": key}).one_or_none()
    return None if row is None else _task(row)


def count_recent_tasks(conn: Connection, elder_id: int, most: int) -> int:
    """How many of an elder's newest tasks are less than a minute old; looks at `most` and no further."""
    statement = """
    SELECT count(*) FROM (SELECT created_at FROM tasks WHERE elder_id = :elder_id ORDER BY id DESC LIMIT :most) newest
    WHERE created_at > clock_timestamp() - interval '1 minute'"""
    return conn.execute(text(statement), {"elder_id": elder_id, "most": most}).scalar_one()


OFFER_COLUMNS = """
id, task_id, student_id, state, deadline,
(state = 'PENDING' AND deadline <= clock_timestamp()) AS overdue
"""


def _offer(row: Any) -> Offer:
    return Offer(row.id, row.task_id, row.student_id, OfferState(row.state), row.deadline, row.overdue)


ASKED_AND_SKIPPED = "(SELECT count(offered_at), count(*) - count(offered_at) FROM offers WHERE task_id = tasks.id)"


def offer_of(conn: Connection, task_id: UUID, student_id: int) -> Offer | None:
    statement = f"SELECT {OFFER_COLUMNS} FROM offers WHERE task_id = :task_id AND student_id = :student_id"
    row = conn.execute(text(statement), {"task_id": task_id, "student_id": student_id}).one_or_none()
    return None if row is None else _offer(row)


def live_offers(conn: Connection, task_ids: Iterable[UUID]) -> dict[UUID, Offer]:
    statement = f"SELECT {OFFER_COLUMNS} FROM offers WHERE task_id = ANY(:ids) AND state = 'PENDING'"
    return {row.task_id: _offer(row) for row in conn.execute(text(statement), {"ids": list(task_ids)})}


def live_task_of_students(conn: Connection, student_ids: Iterable[int]) -> dict[int, UUID]:
    """Which task each student is being asked for; unlocked, so read it again under the task's lock."""
    statement = "SELECT student_id, task_id FROM offers WHERE student_id = ANY(:ids) AND state = 'PENDING'"
    return {row.student_id: row.task_id for row in conn.execute(text(statement), {"ids": list(student_ids)})}


def close_offer(conn: Connection, offer: Offer, state: OfferState, reason: str | None = None) -> bool:
    """True when it was this call that took the offer from the state it was read in."""
    statement = """
    UPDATE offers SET state = :state, reason = :reason, closed_at = clock_timestamp()
    WHERE id = :id AND state = :from_state RETURNING id"""
    row = conn.execute(
        text(statement), {"id": offer.id, "state": state, "from_state": offer.state, "reason": reason}
    ).one_or_none()
    return row is not None


def accept_offer(conn: Connection, offer: Offer) -> bool:
    statement = """
    UPDATE offers SET state = 'ACCEPTED', closed_at = clock_timestamp()
    WHERE id = :id AND state = 'PENDING' AND deadline > clock_timestamp() RETURNING id"""
    return conn.execute(text(statement), {"id": offer.id}).one_or_none() is not None


def accept_by_hand(conn: Connection, task_id: UUID, student_id: int, time_zone: str) -> None:
    """Whatever became of an earlier offer, and also where there was none."""
    statement = f"""
    INSERT INTO offers AS o (task_id, student_id, state, reason, rank, completed_this_month, distance_m, offered_at,
                             closed_at)
    SELECT t.id, s.id, 'ACCEPTED', 'ASSIGNED_BY_HAND', t.asked + t.skipped + 1,
           CASE WHEN s.month = {MONTH} THEN s.completed ELSE 0 END, ST_Distance(t.location, s.location),
           clock_timestamp(), clock_timestamp()
    FROM tasks t, students s WHERE t.id = :task_id AND s.id = :student_id
    ON CONFLICT (task_id, student_id) DO UPDATE
    SET state = 'ACCEPTED', reason = 'ASSIGNED_BY_HAND', closed_at = clock_timestamp(),
        offered_at = coalesce(o.offered_at, excluded.offered_at), rank = coalesce(o.rank, excluded.rank)"""
    conn.execute(text(statement), {"task_id": task_id, "student_id": student_id, "time_zone": time_zone})
    conn.execute(
        text(f"UPDATE tasks SET (asked, skipped) = {ASKED_AND_SKIPPED} WHERE id = :task_id"),
        {"task_id": task_id},
    )


def is_active_student(conn: Connection, student_id: int) -> bool:
    statement = "SELECT active FROM students WHERE id = :id"
    return bool(conn.execute(text(statement), {"id": student_id}).scalar_one_or_none())


def set_due(conn: Connection, task_id: UUID) -> None:
    """The next step of a search is due now: covers the hint that follows the commit."""
    conn.execute(
        text("UPDATE tasks SET next_step_at = clock_timestamp() WHERE id = :id AND status = 'PENDING'"),
        {"id": task_id},
    )


@dataclass(frozen=True)
class Expired:
    task_id: UUID
    student_id: int
    late_s: float


def expire_offers(conn: Connection, task_ids: Sequence[UUID]) -> list[Expired]:
    """Closes what is overdue among these tasks."""
    statement = """
    UPDATE offers SET state = 'EXPIRED', closed_at = clock_timestamp()
    WHERE task_id = ANY(:ids) AND state = 'PENDING' AND deadline <= clock_timestamp()
    RETURNING task_id, student_id, extract(epoch FROM clock_timestamp() - deadline)::float8 AS late_s"""
    rows = conn.execute(text(statement), {"ids": list(task_ids)})
    return [Expired(row.task_id, row.student_id, row.late_s) for row in rows]


FACTS = text(f"""
SELECT c.task_id, c.student_id, o.id IS NOT NULL AS seen_before, live.deadline AS busy_until,
       CASE WHEN s.month = {MONTH} THEN s.completed ELSE 0 END AS completed, spot.distance_m,
       CASE WHEN s.id IS NULL OR NOT s.active THEN 'INACTIVE'
            WHEN NOT s.on_duty THEN 'OFF_DUTY'
            WHEN s.location IS NULL THEN 'NO_LOCATION'
            WHEN s.open_task_id IS NOT NULL THEN 'HAS_A_TASK'
            WHEN spot.distance_m > :radius_m THEN 'TOO_FAR' END AS obstacle
FROM unnest(CAST(:task_ids AS uuid[]), CAST(:student_ids AS bigint[])) AS c (task_id, student_id)
JOIN tasks t ON t.id = c.task_id
LEFT JOIN students s ON s.id = c.student_id
LEFT JOIN offers o ON o.task_id = c.task_id AND o.student_id = c.student_id
LEFT JOIN offers live ON live.student_id = c.student_id AND live.state = 'PENDING'
CROSS JOIN LATERAL (SELECT ST_Distance(s.location, t.location) AS distance_m) spot
""")


def facts(
    conn: Connection, pairs: Sequence[tuple[UUID, int]], *, radius_m: float, time_zone: str
) -> dict[tuple[UUID, int], Fact]:
    if not pairs:
        return {}
    rows = conn.execute(
        FACTS,
        {
            "task_ids": [task_id for task_id, _ in pairs],
            "student_ids": [student_id for _, student_id in pairs],
            "radius_m": radius_m,
            "time_zone": time_zone,
        },
    )
    return {
        (row.task_id, row.student_id): Fact(
            row.task_id,
            row.student_id,
            row.obstacle,
            row.seen_before,
            row.busy_until,
            row.completed,
            row.distance_m,
        )
        for row in rows
    }


INSERT_OFFERS = text("""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
INSERT INTO offers (task_id, student_id, state, rank, completed_this_month, distance_m, offered_at, deadline)
SELECT p.task_id, p.student_id, 'PENDING', p.rank, p.completed, p.distance_m, clock.now, clock.now + :ttl
FROM unnest(CAST(:task_ids AS uuid[]), CAST(:student_ids AS bigint[]), CAST(:ranks AS int[]),
            CAST(:completed AS int[]), CAST(:distances AS float8[]))
     AS p (task_id, student_id, rank, completed, distance_m), clock
ORDER BY p.student_id
ON CONFLICT DO NOTHING
RETURNING task_id, deadline
""")


def insert_offers(conn: Connection, picks: Sequence[Pick], ttl: timedelta) -> dict[UUID, datetime]:
    """The deadline of each offer that came to be."""
    if not picks:
        return {}
    rows = conn.execute(
        INSERT_OFFERS,
        {
            "task_ids": [pick.task_id for pick in picks],
            "student_ids": [pick.student_id for pick in picks],
            "ranks": [pick.rank for pick in picks],
            "completed": [pick.completed for pick in picks],
            "distances": [pick.distance_m for pick in picks],
            "ttl": ttl,
        },
    )
    return {row.task_id: row.deadline for row in rows}


INSERT_SKIPS = text("""
INSERT INTO offers (task_id, student_id, state, reason, completed_this_month, distance_m, closed_at)
SELECT p.task_id, p.student_id, 'SKIPPED', p.reason, p.completed, p.distance_m, clock_timestamp()
FROM unnest(CAST(:task_ids AS uuid[]), CAST(:student_ids AS bigint[]), CAST(:reasons AS text[]),
            CAST(:completed AS int[]), CAST(:distances AS float8[]))
     AS p (task_id, student_id, reason, completed, distance_m)
JOIN students s ON s.id = p.student_id
ORDER BY p.student_id
ON CONFLICT DO NOTHING
RETURNING task_id
""")


def insert_skips(conn: Connection, skips: Sequence[Skip]) -> list[UUID]:
    if not skips:
        return []
    rows = conn.execute(
        INSERT_SKIPS,
        {
            "task_ids": [skip.task_id for skip in skips],
            "student_ids": [skip.student_id for skip in skips],
            "reasons": [skip.reason for skip in skips],
            "completed": [skip.completed for skip in skips],
            "distances": [skip.distance_m for skip in skips],
        },
    )
    return [row.task_id for row in rows]


@dataclass(frozen=True)
class Progress:
    """What a step of the cascade leaves in the row of a task that goes on searching."""

    task_id: UUID
    next_step_at: datetime
    waiting: bool
    asked: int
    skipped: int
    listed: int


def save_progress(conn: Connection, progress: Sequence[Progress]) -> None:
    if not progress:
        return
    statement = """
    UPDATE tasks t SET next_step_at = p.next_step_at, waiting = p.waiting, asked = p.asked,
                       skipped = p.skipped, listed = p.listed, updated_at = clock_timestamp()
    FROM unnest(CAST(:ids AS uuid[]), CAST(:next_steps AS timestamptz[]), CAST(:waiting AS bool[]),
                CAST(:asked AS int[]), CAST(:skipped AS int[]), CAST(:listed AS int[]))
         AS p (id, next_step_at, waiting, asked, skipped, listed)
    WHERE t.id = p.id"""
    conn.execute(
        text(statement),
        {
            "ids": [item.task_id for item in progress],
            "next_steps": [item.next_step_at for item in progress],
            "waiting": [item.waiting for item in progress],
            "asked": [item.asked for item in progress],
            "skipped": [item.skipped for item in progress],
            "listed": [item.listed for item in progress],
        },
    )


def move_task(conn: Connection, task: Task, target: TaskStatus, **changes: Any) -> datetime | None:
    """Takes a locked task from the status it was read in to `target`, and tells when its next step is due.

    `changes` are further columns; a `Sql` value is put in as an expression.
    """
    sets = ["status = :target", "updated_at = clock_timestamp()"]
    values: dict[str, Any] = {"id": task.id, "target": target, "current": task.status}
    for column, value in changes.items():
        if isinstance(value, Sql):
            sets.append(f"{column} = {value.expression}")
            values |= value.values
        else:
            sets.append(f"{column} = :{column}")
            values[column] = value
    statement = f"UPDATE tasks SET {', '.join(sets)} WHERE id = :id AND status = :current RETURNING next_step_at"
    row = conn.execute(text(statement), values).one_or_none()
    if row is None:
        raise Overtaken
    return row.next_step_at


@dataclass(frozen=True)
class Sql:
    expression: str
    values: Mapping[str, Any]


def in_the_future(name: str, by: timedelta) -> Sql:
    return Sql(f"clock_timestamp() + :{name}", {name: by})


NOW = Sql("clock_timestamp()", {})


def take_student(conn: Connection, student_id: int, task_id: UUID) -> bool:
    """False when the student is not active or holds another task."""
    statement = """
    UPDATE students SET open_task_id = :task_id
    WHERE id = :id AND active AND open_task_id IS NULL RETURNING id"""
    return conn.execute(text(statement), {"id": student_id, "task_id": task_id}).one_or_none() is not None


def free_student(conn: Connection, student_id: int) -> None:
    conn.execute(text("UPDATE students SET open_task_id = NULL WHERE id = :id"), {"id": student_id})


def count_completed(conn: Connection, student_id: int, time_zone: str) -> None:
    """A count belongs to its month: the first one of a new month starts again at one."""
    statement = f"""
    UPDATE students SET completed = CASE WHEN month = {MONTH} THEN completed + 1 ELSE 1 END, month = {MONTH},
                        open_task_id = NULL
    WHERE id = :id"""
    conn.execute(text(statement), {"id": student_id, "time_zone": time_zone})


def end_searches(conn: Connection, task_ids: Sequence[UUID]) -> list[UUID]:
    statement = f"""
    UPDATE tasks SET status = 'TIMED_OUT', next_step_at = NULL, ended_at = clock_timestamp(),
                     updated_at = clock_timestamp(), (asked, skipped) = {ASKED_AND_SKIPPED}
    WHERE id = ANY(:ids) AND status = 'PENDING' RETURNING id"""
    return [row.id for row in conn.execute(text(statement), {"ids": list(task_ids)})]


# The index holds only tasks that wait, so this costs next to nothing while nobody does.
WAITING_WITHIN_REACH = text("""
SELECT DISTINCT waiting.id
FROM students s CROSS JOIN LATERAL (
    SELECT t.id FROM tasks t
    WHERE t.waiting AND t.status = 'PENDING' AND t.search_until > clock_timestamp()
      AND ST_DWithin(t.location, s.location, :radius_m)
      AND NOT EXISTS (SELECT FROM offers o WHERE o.task_id = t.id AND o.student_id = s.id)
    ORDER BY t.created_at, t.id LIMIT 1
) waiting
WHERE s.id = ANY(:student_ids) AND s.available
  AND NOT EXISTS (SELECT FROM offers o WHERE o.student_id = s.id AND o.state = 'PENDING')
""")


def oldest_waiting_tasks(conn: Connection, student_ids: Iterable[int], radius_m: float) -> set[UUID]:
    """For each of these students who is free, the oldest task that waits for somebody within reach."""
    rows = conn.execute(WAITING_WITHIN_REACH, {"student_ids": sorted(student_ids), "radius_m": radius_m})
    return {row.id for row in rows}


def tasks_waiting_for(conn: Connection, student_ids: Iterable[int], radius_m: float) -> set[UUID]:
    statement = """
    SELECT t.id FROM students s JOIN tasks t ON ST_DWithin(t.location, s.location, :radius_m)
    WHERE s.id = ANY(:student_ids) AND t.waiting AND t.status = 'PENDING'
      AND NOT EXISTS (SELECT FROM offers o WHERE o.task_id = t.id AND o.student_id = s.id)"""
    rows = conn.execute(text(statement), {"student_ids": sorted(student_ids), "radius_m": radius_m})
    return {row.id for row in rows}


def due_tasks(conn: Connection, most: int) -> list[UUID]:
    """Whose next step is due, the longest overdue first."""
    statement = """
    SELECT id FROM tasks
    WHERE next_step_at <= clock_timestamp() AND next_step_at IS NOT NULL
      AND status IN ('PENDING', 'ASSIGNED', 'STARTED')
    ORDER BY next_step_at LIMIT :most"""
    return [row.id for row in conn.execute(text(statement), {"most": most})]


@dataclass(frozen=True)
class Standing:
    """What Redis should hold for a task, as PostgreSQL has it."""

    task_id: UUID
    status: TaskStatus
    student_id: int | None
    deadline: datetime | None
    next_step_at: datetime | None


STANDINGS = """
SELECT t.id, t.status, t.next_step_at, o.student_id, o.deadline
FROM tasks t LEFT JOIN offers o ON o.task_id = t.id AND o.state = 'PENDING'
"""


def _standings(conn: Connection, where: str, values: Mapping[str, Any]) -> list[Standing]:
    return [
        Standing(row.id, TaskStatus(row.status), row.student_id, row.deadline, row.next_step_at)
        for row in conn.execute(text(STANDINGS + where), values)
    ]


def open_standings(conn: Connection, after: UUID, most: int) -> list[Standing]:
    where = "WHERE t.id > :after AND t.status IN ('PENDING', 'ASSIGNED', 'STARTED') ORDER BY t.id LIMIT :most"
    return _standings(conn, where, {"after": after, "most": most})


def standings_changed(conn: Connection, since: datetime, until: datetime) -> list[Standing]:
    where = "WHERE t.updated_at > :since AND t.updated_at <= :until"
    return _standings(conn, where, {"since": since, "until": until})
