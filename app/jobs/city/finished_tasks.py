"""Finished tasks of the demo city with their offers, so that reports have something to show.

Everything is computed from the seed and the number of a task, in the database. Students stand along a curve through
the city that keeps neighbours together. A task asks students who follow each other on it near the elder. Some places
of the curve are asked more often than others and some parts of the city find nobody more often, so that the report
shows inequality.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from app.matching.contract import OfferState, TaskStatus

BLOCK = 40
"""Students of one block are asked for the same elders."""
SLOT_S = 600
"""How long a silent student holds up a task: the time an offer is live by default."""


@dataclass(frozen=True)
class History:
    keys: str
    """What the keys of its people begin with."""
    seed: int
    tasks: int
    since: datetime
    until: datetime


# Geometries sort along a Hilbert curve.
CURVE = """
CREATE TEMPORARY TABLE city_curve ON COMMIT DROP AS
SELECT id, home, is_student, count(*) FILTER (WHERE is_student) OVER along - 1 AS student,
       count(*) FILTER (WHERE NOT is_student) OVER along - 1 AS elder
  FROM (SELECT u.id, u.home, s.id IS NOT NULL AS is_student, coalesce(s.location, u.home)::geometry AS spot
          FROM users u LEFT JOIN students s ON s.id = u.id
         WHERE u.firebase_uid LIKE :keys) people
WINDOW along AS (ORDER BY spot, id ROWS UNBOUNDED PRECEDING)
"""
CURVE_INDEXES = """
CREATE INDEX ON city_curve (student) WHERE is_student;
CREATE INDEX ON city_curve (elder) WHERE NOT is_student;
ANALYZE city_curve
"""


def _draw(salt: int, of: str = "n") -> str:
    """SQL of a number from 0 to below 1 that depends on the seed."""
    return f"((hashint8extended({of}, :seed * 16 + {salt}) & 1048575) / 1048576.0)"


# `waits` asked students answer nothing or no before the last one, who accepts if the task is completed.
PLAN = f"""
CREATE TEMPORARY TABLE city_tasks ON COMMIT DROP AS
SELECT n, at, elder_id, home, skipped, waits, silent, answer_s, way_s, status, first, block,
       (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(random, 1, 3) || '8'
           || substr(random, 4, 15))::uuid AS id
  FROM (SELECT n, at, e.id AS elder_id, e.home, (e.student / {BLOCK}) * {BLOCK} AS block,
               floor({_draw(1)} ^ 2 * {BLOCK})::int AS first,
               floor({_draw(2)} ^ 3 * 3)::int AS skipped, floor({_draw(3)} ^ 2 * 5)::int AS waits,
               {_draw(4)} < 0.45 AS silent, (10 + {_draw(5)} ^ 2 * 400)::int AS answer_s,
               (180 + {_draw(6)} ^ 2 * 1500)::int AS way_s,
               CASE WHEN {_draw(7)} < 0.04 THEN '{TaskStatus.CANCELLED}'
                    WHEN {_draw(8)} < 0.02 + 0.25 * {_draw(9, f"(e.student / {BLOCK})")} ^ 2
                    THEN '{TaskStatus.TIMED_OUT}' ELSE '{TaskStatus.COMPLETED}' END AS status,
               md5(:seed || '/' || n) AS random
          FROM (SELECT n, CAST(:since AS timestamptz)
                       + (n - 1 + {_draw(10)}) / :tasks * (CAST(:until AS timestamptz) - :since) AS at
                  FROM generate_series(CAST(:first AS bigint), :last) n) numbered
          JOIN city_curve e ON NOT e.is_student
           AND e.elder = floor({_draw(11)} * (SELECT count(*) FROM city_curve WHERE NOT is_student))) drawn
"""

# Students of the seed may be fewer than a task asks. The curve is closed to a ring, and a place that comes round to its
# beginning asks nobody twice.
OFFERS = f"""
CREATE TEMPORARY TABLE city_offers ON COMMIT DROP AS
SELECT t.id AS task_id, s.id AS student_id, place, t.skipped, t.waits, t.silent, t.answer_s, t.status, t.at,
       t.at + interval '1 second' * (CASE WHEN t.silent THEN {SLOT_S} ELSE 90 END * (place - t.skipped)) AS offered_at
  FROM city_tasks t
 CROSS JOIN (SELECT count(*) AS all_ FROM city_curve WHERE is_student) students
 CROSS JOIN LATERAL generate_series(0, t.skipped + t.waits) place
  JOIN city_curve s ON s.is_student AND s.student = mod(t.block + t.first + place, all_)
 WHERE t.skipped + t.waits < all_
"""
INSERT_OFFERS = f"""
INSERT INTO offers (task_id, student_id, state, rank, distance_m, reason, offered_at, deadline, closed_at, created_at)
SELECT task_id, student_id, state, place + 1, 300 + 100 * place,
       CASE state WHEN '{OfferState.SKIPPED}' THEN (ARRAY['OFF_DUTY', 'TOO_FAR', 'HAS_A_TASK'])[1 + place % 3]
                  WHEN '{OfferState.WITHDRAWN}' THEN 'CANCELLED' END,
       CASE WHEN asked THEN offered_at END, CASE WHEN asked THEN offered_at + interval '{SLOT_S} s' END,
       CASE state WHEN '{OfferState.SKIPPED}' THEN at WHEN '{OfferState.EXPIRED}'
                  THEN offered_at + interval '{SLOT_S} s'
                  WHEN '{OfferState.REJECTED}' THEN offered_at + interval '80 s'
                  ELSE offered_at + interval '1 second' * answer_s END,
       at
  FROM (SELECT *, place >= skipped AS asked,
               CASE WHEN place < skipped THEN '{OfferState.SKIPPED}'
                    WHEN place < skipped + waits OR status = '{TaskStatus.TIMED_OUT}'
                    THEN CASE WHEN silent THEN '{OfferState.EXPIRED}' ELSE '{OfferState.REJECTED}' END
                    WHEN status = '{TaskStatus.CANCELLED}' THEN '{OfferState.WITHDRAWN}'
                    ELSE '{OfferState.ACCEPTED}' END AS state
          FROM city_offers) answered
 ORDER BY task_id, place
"""
INSERT_TASKS = f"""
INSERT INTO tasks (id, status, elder_id, student_id, location, created_at, updated_at, search_until, listed, asked,
                   skipped, assigned_at, started_at, ended_at)
SELECT t.id, t.status, elder_id, CASE WHEN done THEN o.student_id END, home, t.at, ended_at, t.at + interval '1 hour',
       t.skipped + t.waits + 1, t.waits + 1, t.skipped, CASE WHEN done THEN accepted_at END,
       CASE WHEN done THEN accepted_at + interval '1 second' * way_s END, ended_at
  FROM city_tasks t
  JOIN city_offers o ON o.task_id = t.id AND o.place = t.skipped + t.waits
 CROSS JOIN LATERAL (SELECT t.status = '{TaskStatus.COMPLETED}' AS done,
                            o.offered_at + interval '1 second' * t.answer_s AS accepted_at) accepted
 CROSS JOIN LATERAL (SELECT CASE t.status
                     WHEN '{TaskStatus.COMPLETED}' THEN accepted_at + interval '1 second' * (way_s + 1500)
                     WHEN '{TaskStatus.TIMED_OUT}' THEN t.at + interval '1 hour' ELSE accepted_at END AS ended_at) ended
 ORDER BY t.id
"""

HAS_TASKS = """
SELECT EXISTS (SELECT FROM users u JOIN tasks t ON t.elder_id = u.id WHERE u.firebase_uid LIKE :keys)
"""
# As matching counts: in the month in which the task was completed.
COUNT = f"""
UPDATE students s SET month = this_month, completed = done.completed
  FROM (SELECT t.student_id, count(*) AS completed, this_month
          FROM tasks t JOIN users u ON u.id = t.student_id,
               (SELECT date_trunc('month', clock_timestamp() AT TIME ZONE :time_zone)::date AS this_month) clock
         WHERE u.firebase_uid LIKE :keys AND t.status = '{TaskStatus.COMPLETED}'
           AND t.ended_at >= this_month::timestamp AT TIME ZONE :time_zone
         GROUP BY t.student_id, this_month) done
 WHERE s.id = done.student_id
"""


def has_tasks(conn: Connection, keys: str) -> bool:
    return conn.execute(text(HAS_TASKS), {"keys": f"{keys}%"}).scalar_one()


def add_finished_tasks(conn: Connection, history: History, first: int, last: int) -> int:
    """The tasks from number `first` to `last` of the history. Returns how many were added."""
    values = {
        "seed": history.seed,
        "tasks": history.tasks,
        "since": history.since,
        "until": history.until,
        "first": first,
        "last": last,
    }
    conn.execute(text(CURVE), {"keys": f"{history.keys}%"})
    for statement in CURVE_INDEXES.split(";"):
        conn.execute(text(statement))
    conn.execute(text(PLAN), values)
    conn.execute(text(OFFERS))
    added = conn.execute(text(INSERT_TASKS)).rowcount
    conn.execute(text(INSERT_OFFERS))
    conn.execute(text("DROP TABLE city_curve, city_tasks, city_offers"))
    return added


def count_completed(conn: Connection, keys: str, time_zone: str) -> None:
    conn.execute(text(COUNT), {"keys": f"{keys}%", "time_zone": time_zone})
