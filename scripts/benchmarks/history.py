"""Generates years of finished tasks with their offers and notifications."""

from benchmarks.bench import Bench, run, say
from benchmarks.city import City, task_id_of
from benchmarks.loading import without_indexes

# Spread evenly over the past five years. Six of seven are completed, the others timed out or cancelled.
TASKS = """
INSERT INTO tasks (id, status, elder_id, student_id, location, created_at, updated_at, search_until, listed, asked,
                   assigned_at, started_at, ended_at)
SELECT {id}, (ARRAY['COMPLETED', 'COMPLETED', 'COMPLETED', 'COMPLETED', 'COMPLETED', 'COMPLETED',
                    CASE WHEN n % 2 = 0 THEN 'TIMED_OUT' ELSE 'CANCELLED' END])[n % 7 + 1],
       {first_elder} + mod(n * 7919, {elders}), CASE WHEN n % 7 < 6 THEN {student} END,
       'SRID=4326;POINT(29 41)'::geography, at, at + interval '1 hour', at + interval '1 hour', 20, 1 + n % 2,
       CASE WHEN n % 7 < 6 THEN at + interval '5 minutes' END, CASE WHEN n % 7 < 6 THEN at + interval '20 minutes' END,
       at + interval '1 hour'
FROM (SELECT n, now() - interval '1 day' - (1 - n::float8 / {finished}) * interval '5 years' AS at
      FROM generate_series(1, {finished}::bigint) n) finished
"""

OFFERS = """
INSERT INTO offers (task_id, student_id, state, rank, completed_this_month, distance_m, offered_at, deadline,
                    closed_at, created_at)
SELECT {id}, CASE WHEN place = last THEN {student} ELSE 1 + mod(n * 6151, {students}) END,
       CASE WHEN place < last THEN 'EXPIRED' WHEN n % 7 < 6 THEN 'ACCEPTED' ELSE 'WITHDRAWN' END, place, n % 5,
       n % 1000, at, at + interval '10 minutes', at + interval '5 minutes', at
FROM (SELECT n, 1 + n % 2 AS last, now() - interval '1 day' - (1 - n::float8 / {finished}) * interval '5 years' AS at
      FROM generate_series(1, {finished}::bigint) n) finished, generate_series(1, last) place
ON CONFLICT DO NOTHING
"""

NOTIFICATIONS = """
INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority, status,
                           metadata, task_id, created_at, expires_at, due_at, attempts, finished_at)
SELECT {notification}, 'PUSH', 'user:' || recipient, recipient, 'Yeni talep',
       'Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var.', 'URGENT',
       CASE WHEN n % 10 = 0 THEN 'CANCELLED' ELSE 'SENT' END, jsonb_build_object('data', jsonb_build_object(
           'type', 'OFFER', 'taskId', {id}, 'notificationId', {notification})), {id}, at,
       at + interval '10 minutes', NULL, 1, at + interval '1 second'
FROM (SELECT n, one, 2 * n + one AS m,
             CASE WHEN one = 0 THEN {student} ELSE {first_elder} + mod(n * 7919, {elders}) END AS recipient,
             now() - interval '1 day' - (1 - n::float8 / {finished}) * interval '5 years' AS at
      FROM generate_series(1, {finished}::bigint) n, generate_series(0, 1) one) finished
"""


def add_finished_tasks(bench: Bench, database: str, city: City, finished: int) -> None:
    values = {
        "finished": finished,
        "id": task_id_of("0", "n"),
        "notification": task_id_of("4", "m"),
        "students": city.students,
        "student": f"1 + mod(n * 104729, {city.students})",
        "first_elder": city.free_elders.start,
        "elders": len(city.free_elders),
    }
    for table, statement in (("tasks", TASKS), ("offers", OFFERS), ("notifications", NOTIFICATIONS)):
        say(f"writing the {table} of {finished:,} finished tasks")
        with bench.connect(database) as conn:
            with without_indexes(conn, table):
                run(conn, statement.format(**values))
            run(conn, f"VACUUM ANALYZE {table}")
