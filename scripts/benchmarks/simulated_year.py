"""Generates days of finished tasks with everything that the product writes about them, as of any time."""

from datetime import date, datetime, timedelta

from app.db.months import Partition
from app.delivery.service import MONTHLY
from benchmarks.bench import Bench, Connection, run

ELDERS, STUDENTS = 2_000, 2_000
MESSAGES = 5
"""Of one task: two offers, "on the way", "started", "completed"."""
PEOPLE = f"""
INSERT INTO users (role, name) SELECT CASE WHEN n <= {ELDERS} THEN 'ELDER' ELSE 'STUDENT' END, 'Bench'
FROM generate_series(1, {ELDERS + STUDENTS}) n;
INSERT INTO students (id, on_duty) SELECT id, false FROM users WHERE role = 'STUDENT'
"""


def _id(kind: str) -> str:
    """SQL of an id of version 7 for the time `at` and the number `n`."""
    digits = f"md5('{kind}' || n)"
    return (
        "(lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'"
        f" || substr({digits}, 1, 3) || '8' || substr({digits}, 4, 15))::uuid"
    )


TASKS = f"""
CREATE TEMP TABLE day_tasks AS
SELECT n, at, {_id("task")} AS id, 1 + mod(n, {ELDERS}) AS elder, 1 + {ELDERS} + mod(n, {STUDENTS}) AS student,
       1 + {ELDERS} + mod(n + 7, {STUDENTS}) AS other
FROM (SELECT %(first)s + n AS n, CAST(%(begin)s AS timestamptz) + n * interval '1 day' / %(tasks)s AS at
      FROM generate_series(0, %(tasks)s - 1) n) AS numbered;
"""
# Notes, addresses and words have their usual lengths.
ROWS = (
    """
    INSERT INTO tasks (id, status, elder_id, student_id, note, location, created_at, updated_at, search_until, listed,
                       asked, assigned_at, started_at, ended_at, idempotency_key)
    SELECT id, 'COMPLETED', elder, student, 'İlacım bitti, eczaneden alınacak. 3. kat, zil bozuk.',
           ST_SetSRID(ST_MakePoint(29 + n % 997 / 5000.0, 41 + n % 991 / 5000.0), 4326)::geography, at,
           at + interval '40 minutes', at + interval '1 hour', 20, 2, at + interval '5 minutes',
           at + interval '20 minutes', at + interval '40 minutes', md5(n::text) FROM day_tasks
    """,
    """
    INSERT INTO offers (task_id, student_id, state, rank, completed_this_month, distance_m, offered_at, deadline,
                        closed_at, created_at)
    SELECT id, CASE m WHEN 1 THEN other ELSE student END, CASE m WHEN 1 THEN 'EXPIRED' ELSE 'ACCEPTED' END, m, n % 5,
           n % 1000 + 0.5, at, at + interval '10 minutes', at + interval '10 minutes', at
    FROM day_tasks, generate_series(1, 2) m
    """,
    f"""
    CREATE TEMP TABLE day_actions AS
    SELECT {_id("action")} AS id, message.*, {_id("notification")} AS notification
      FROM (SELECT n * {MESSAGES} + m AS n, m, at + m * interval '1 minute' AS at, id AS task,
                   CASE WHEN m = 1 THEN other WHEN m = 2 THEN student ELSE elder END AS person
              FROM day_tasks, generate_series(1, {MESSAGES}) m) AS message
    """,
    """
    INSERT INTO actions (id, action_plan_id, status, origin, person_id, task_id, variables, data, steps, priority,
                         created_at, finished_at)
    SELECT id, 1, 'DONE', 'INTERNAL', person, task, '{"student": "Ahmet"}',
           jsonb_build_object('type', 'ON_THE_WAY', 'taskId', task), jsonb_build_array(jsonb_build_object(
               'step_order', 1, 'channel_type', 'push', 'audience', 'PERSON', 'on_failure', 'STOP', 'state', 'SENT',
               'template_key', 'matching.on_the_way', 'tried', 1, 'asked_at', at, 'targets', jsonb_build_array(
                   jsonb_build_object('channel_type', 'push', 'recipient', 'user:' || person, 'locale', 'tr',
                                      'user_id', person, 'notification_id', notification)))),
           'HIGH', at, at + interval '1 second' FROM day_actions
    """,
    """
    INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority, status,
                               metadata, task_id, action_id, step_order, created_at, due_at, attempts, finished_at)
    SELECT notification, CASE WHEN n % 20 = 0 THEN 'SMS' ELSE 'PUSH' END,
           CASE WHEN n % 20 = 0 THEN '+905551234567' ELSE 'user:' || person END, person, 'Yardım geliyor',
           'Ahmet yola çıktı!', 'HIGH', 'SENT', jsonb_build_object('data', jsonb_build_object(
               'type', 'ON_THE_WAY', 'taskId', task, 'notificationId', notification)), task, id, 1, at, NULL, 1,
           at + interval '1 second' FROM day_actions
    """,
    """
    INSERT INTO notification_attempts (notification_id, attempt, device_id, outcome, provider_message_id, at)
    SELECT notification, 1, 'phone-' || person, 'SENT', 'projects/yaninda/messages/' || md5(n::text), at
      FROM day_actions
    """,
    """
    INSERT INTO dead_letters (id, notification_id, action_id, step_order, channel_type, error_code, error_message,
                              retryable, retry_count, failed_at, status, closed_at)
    SELECT notification, notification, id, 1, 'push', 'UNREACHABLE', 'The phone could not be reached.', true, 2, at,
           'DISCARDED', at + interval '1 day' FROM day_actions WHERE n % 200 = 0
    """,
    """
    INSERT INTO in_app_messages (notification_id, user_id, subject, body, data, created_at)
    SELECT notification, person, 'Yardım geliyor', 'Ahmet yola çıktı!', '{}', at FROM day_actions WHERE m = 5
    """,
    "DROP TABLE day_tasks, day_actions",
)


def create(bench: Bench, database: str, first: date, last: date) -> None:
    """An empty database with people, and partitions for the months between the two days."""
    bench.create(database)
    with bench.connect(database) as conn:
        run(conn, PEOPLE)
        month = first.replace(day=1)
        while month <= last:
            for table in MONTHLY:
                _add_month(conn, Partition(table, month))
            month = (month + timedelta(days=32)).replace(day=1)


def _add_month(conn: Connection, partition: Partition) -> None:
    first, last = partition.borders
    options = f"WITH ({partition.table.options})" if partition.table.options else ""
    run(
        conn,
        f"CREATE TABLE IF NOT EXISTS {partition.name} PARTITION OF {partition.table.name}"
        f" FOR VALUES FROM ('{first}') TO ('{last}') {options}",
    )


def add_day(conn: Connection, begin: datetime, tasks: int, number: int) -> None:
    """`number` counts the days, so that ids differ."""
    run(conn, "SET session_replication_role = replica")
    run(conn, "SET synchronous_commit = off")
    values = {"first": number * 1_000_000, "begin": begin, "tasks": tasks}
    run(conn, TASKS, values)
    for statement in ROWS:
        run(conn, statement)
