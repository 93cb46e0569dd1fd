"""The least SQL of a press and of an accept that keeps every promise, written by hand for pgbench.

Ours does the same in more statements. What Python works out between two statements comes from a table of values: ids
of version 7, the place on the map, and rendered texts. What another transaction may have changed is read again, as in
ours. Answers, Redis and follow-ups whose loss a committed row covers are left out.

A blank line ends a statement, and `\\gset` reads its answer. Between `\\startpipeline` and `\\endpipeline` nothing
waits for an answer, so that all of it is one round trip.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.db.wake import WAKE_CHANNEL
from app.foundation.ids import uuid7
from app.matching.rules.map_distance import SearchCircle
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.candidates import ON_THE_MAP
from app.users.models import LatLon
from benchmarks.bench import Bench, Connection, fetch
from benchmarks.pgbench import Script, write_values_and_text

RULES = MatchingRules()
CONSTANTS = {"time_zone": f"'{RULES.time_zone}'", "cancels": f"{RULES.cancels_per_student}", "most": f"{RULES.cap + 1}"}
VARIABLE = re.compile(r"(?<!:):([a-z]\w*)")
COLUMN_TYPES = {"task_id": "uuid", "elder_id": "bigint"}

# What the conductor reads to write a message: the plan with its texts, and the person with profiles and channels.
PLAN = """SELECT p.id AS plan_id, p.status AS plan_is_on,
       (SELECT json_agg(s) FROM action_plan_steps s WHERE s.action_plan_id = p.id AND s.retired_at IS NULL) AS steps,
       (SELECT json_agg(m) FROM message_templates m WHERE m.retired_at IS NULL AND m.key IN (
            SELECT s.template_key FROM action_plan_steps s WHERE s.action_plan_id = p.id AND s.retired_at IS NULL)
       ) AS templates
FROM action_plans p WHERE p.key = '{key}' AND p.retired_at IS NULL"""
PERSON = """coalesce({person}.locale, 'tr') AS locale, {person}.phone AS person_phone,
{person}.active AS person_is_active,
{person}.institution_id,
(SELECT json_agg(json_build_object('profile', r, 'channels',
            (SELECT json_agg(c) FROM recipient_channels c WHERE c.profile_id = r.id)))
 FROM recipient_profiles r WHERE r.user_id = {person}.id AND r.retired_at IS NULL AND r.status) AS profiles"""

PRESS = f"""
BEGIN;

-- The caller is read and active, and the row is locked until the commit, so that a transaction which deactivates the
-- elder waits and then sees the task. A second press finds the open task, and few tasks are made in a minute and in an
-- hour. Candidates are ranked by the query of ours.
WITH elder AS MATERIALIZED (
    SELECT id, name, phone FROM users WHERE id = :elder_id::bigint AND role = 'ELDER' AND active FOR SHARE
), allowed AS MATERIALIZED (
    SELECT elder.* FROM elder
    WHERE NOT EXISTS (SELECT FROM tasks WHERE elder_id = :elder_id::bigint
                      AND status IN ('PENDING', 'ASSIGNED', 'STARTED'))
      AND (SELECT count(*) < {RULES.tasks_per_hour}
              AND count(*) FILTER (WHERE created_at > clock_timestamp() - interval '1 minute')
                  < {RULES.tasks_per_minute}
           FROM (SELECT created_at FROM tasks WHERE elder_id = :elder_id::bigint
                 ORDER BY id DESC LIMIT {max(RULES.tasks_per_minute, RULES.tasks_per_hour)}) newest
           WHERE created_at > clock_timestamp() - interval '1 hour')
), ranked (completed, distance_m, id, busy_until, eligible, on_the_rim) AS MATERIALIZED ({{ranking}}
), free AS (
    SELECT id, completed FROM ranked WHERE busy_until IS NULL ORDER BY completed, distance_m, id LIMIT 1
)
SELECT allowed.name AS elder_name, allowed.phone AS elder_phone,
       coalesce((SELECT max(eligible) FROM ranked), 0) AS listed,
       (SELECT array_agg(id ORDER BY completed, distance_m, id) FROM ranked) AS candidates,
       coalesce(free.id, 0) AS student_id, coalesce(free.completed, 0) AS completed, student.name AS student_name,
       {PERSON.format(person="student")}, plan.*
FROM allowed LEFT JOIN free ON true LEFT JOIN users student ON student.id = free.id,
     ({PLAN.format(key="matching.offer")}) plan \\gset

\\startpipeline

SELECT FROM students WHERE id = :student_id::bigint FOR NO KEY UPDATE;

-- A new statement, so that it sees what was committed before the lock: the student is still eligible, and nobody else
-- asks them. Of two presses at once, the unique index lets one insert its task. Task, deadline, action and message are
-- there or none of them. Without a student the task is due, and the matcher goes on with it.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ready AS MATERIALIZED (
    SELECT s.id, away.distance_m
    FROM students s CROSS JOIN LATERAL (SELECT ST_Distance(s.location, (SELECT home FROM users
                                        WHERE id = :elder_id::bigint)) AS distance_m) away
    WHERE s.id = :student_id::bigint
      AND s.active AND s.on_duty AND s.open_task_id IS NULL AND away.distance_m <= {RULES.radius_m}
      AND NOT EXISTS (SELECT FROM offers o WHERE o.student_id = s.id AND o.state = 'PENDING')
), task AS (
    INSERT INTO tasks (id, status, elder_id, note, location, created_at, updated_at, search_until, next_step_at, listed,
                       asked)
    SELECT :task_id::uuid, 'PENDING', u.id, :note, u.home, now, now, now + interval '{RULES.search_limit.seconds} s',
           CASE WHEN ready.id IS NULL THEN now ELSE now + interval '{RULES.offer_ttl.seconds} s' END, :listed::int,
           CASE WHEN ready.id IS NULL THEN 0 ELSE 1 END
    FROM clock CROSS JOIN users u LEFT JOIN ready ON true WHERE u.id = :elder_id::bigint
    ON CONFLICT DO NOTHING RETURNING id, created_at, next_step_at
), offered AS (
    INSERT INTO offers (task_id, student_id, state, rank, completed_this_month, distance_m, offered_at, deadline)
    SELECT task.id, ready.id, 'PENDING', 1, :completed::int, ready.distance_m, task.created_at, task.next_step_at
    FROM task, ready ON CONFLICT DO NOTHING RETURNING task_id, student_id, deadline
), data AS MATERIALIZED (
    SELECT offered.*, jsonb_build_object('type', 'OFFER', 'taskId', task_id, 'deadline', deadline) AS data FROM offered
), action AS (
    INSERT INTO actions (id, key_owner, action_plan_id, status, origin, person_id, task_id, variables, data, steps,
                         priority, expires_at)
    SELECT :action_id::uuid, 'INTERNAL', :plan_id::bigint, 'RUNNING', 'INTERNAL', student_id, task_id,
           jsonb_build_object('minutes', 10, 'seconds', 600), data,
           jsonb_build_array(jsonb_build_object('state', 'RUNNING', 'tried', 1, 'asked_at', clock_timestamp(),
               'audience', 'PERSON', 'on_failure', 'STOP', 'step_order', 1, 'channel_type', 'push',
               'template_key', 'matching.offer', 'targets', jsonb_build_array(jsonb_build_object(
                   'locale', :locale::text, 'user_id', student_id, 'recipient', 'user:' || student_id,
                   'channel_type', 'push', 'notification_id', :notification_id::uuid)))),
           'URGENT', deadline
    FROM data
), sent AS (
    INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority, metadata,
                               task_id, expires_at, action_id, step_order)
    SELECT :notification_id::uuid, 'PUSH', 'user:' || student_id, student_id, :subject, :body, 'URGENT',
           jsonb_build_object('data', data || jsonb_build_object('notificationId', :notification_id::uuid)),
           task_id, deadline, :action_id::uuid, 1
    FROM data RETURNING notification_type
)
SELECT task.*, (SELECT count(pg_notify('{WAKE_CHANNEL}', notification_type)) FROM sent) AS announced FROM task;

COMMIT;

\\endpipeline
"""

ACCEPT = f"""
-- The caller is read and active. The message to the elder is rendered from what is read here, as in ours.
SELECT me.name, me.phone, elder.id AS elder_id, elder.name AS elder_name, elder.phone AS elder_phone,
       t.note, t.created_at, ST_Y(t.location::geometry) AS lat, ST_X(t.location::geometry) AS lon,
       {PERSON.format(person="elder")}, plan.*
FROM users me, tasks t JOIN users elder ON elder.id = t.elder_id, ({PLAN.format(key="matching.on_the_way")}) plan
WHERE me.id = :student_id::bigint AND me.active AND me.role = 'STUDENT' AND t.id = :task_id::uuid \\gset

\\startpipeline

BEGIN;

-- The task, then the student.
SELECT FROM tasks WHERE id = :task_id::uuid FOR NO KEY UPDATE;

SELECT FROM students WHERE id = :student_id::bigint FOR NO KEY UPDATE;

-- Under both locks: the offer is live and in time, and the student is active and free. Then everything is written, or
-- nothing. A task with live offers to others needs one more statement, which takes them back; that is rare.
WITH ready AS MATERIALIZED (
    SELECT o.id AS offer_id, t.id AS task_id, t.elder_id, s.id AS student_id
    FROM tasks t JOIN offers o ON o.task_id = t.id AND o.student_id = :student_id::bigint
    JOIN students s ON s.id = o.student_id
    WHERE t.id = :task_id::uuid AND t.status = 'PENDING' AND o.state = 'PENDING' AND o.deadline > clock_timestamp()
      AND s.active AND s.open_task_id IS NULL
      AND NOT EXISTS (SELECT FROM offers other WHERE other.task_id = t.id AND other.state = 'PENDING'
                      AND other.id <> o.id)
), accepted AS (
    UPDATE offers o SET state = 'ACCEPTED', closed_at = clock_timestamp() FROM ready WHERE o.id = ready.offer_id
), taken AS (
    UPDATE students s SET open_task_id = ready.task_id FROM ready WHERE s.id = ready.student_id
), assigned AS (
    UPDATE tasks t SET status = 'ASSIGNED', student_id = ready.student_id, assigned_at = clock_timestamp(),
                       waiting = false, next_step_at = clock_timestamp() + interval '{RULES.start_limit.seconds} s',
                       updated_at = greatest(clock_timestamp(), t.updated_at + interval '1 microsecond')
    FROM ready WHERE t.id = ready.task_id RETURNING t.asked, t.listed, t.skipped, t.next_step_at
), action AS (
    INSERT INTO actions (id, key_owner, action_plan_id, status, origin, person_id, task_id, variables, data, steps,
                         priority, due_at)
    SELECT :action_id::uuid, 'INTERNAL', :plan_id::bigint, 'RUNNING', 'INTERNAL', elder_id, task_id,
           jsonb_build_object('student', :first_name::text),
           jsonb_build_object('type', 'ON_THE_WAY', 'taskId', task_id),
           jsonb_build_array(jsonb_build_object('state', 'RUNNING', 'tried', 1, 'asked_at', clock_timestamp(),
               'audience', 'PERSON', 'on_failure', 'STOP', 'step_order', 1, 'channel_type', 'push', 'fallback',
               jsonb_build_array('sms'), 'within_s', 60, 'may_arrive_twice', true,
               'template_key', 'matching.on_the_way', 'targets', jsonb_build_array(
                   jsonb_build_object('locale', :locale::text, 'user_id', elder_id, 'recipient', 'user:' || elder_id,
                                      'channel_type', 'push', 'notification_id', :notification_id::uuid),
                   jsonb_build_object('locale', :locale::text, 'user_id', elder_id, 'recipient', :elder_phone::text,
                                      'channel_type', 'sms')))),
           'HIGH', clock_timestamp() + interval '60 s'
    FROM ready
), sent AS (
    INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority, metadata,
                               task_id, action_id, step_order)
    SELECT :notification_id::uuid, 'PUSH', 'user:' || elder_id, elder_id, :subject, :body, 'HIGH',
           jsonb_build_object('data', jsonb_build_object('type', 'ON_THE_WAY', 'taskId', task_id,
                                                         'notificationId', :notification_id::uuid)),
           task_id, :action_id::uuid, 1
    FROM ready
    UNION ALL
    SELECT :audit_id::uuid, 'AUDIT', 'task:' || task_id, NULL, 'matching.details_shown', :shown, 'NORMAL',
           jsonb_build_object('taskId', task_id, 'elderId', elder_id, 'studentId', student_id),
           NULL, NULL, NULL
    FROM ready RETURNING notification_type
)
SELECT assigned.*, (SELECT count(pg_notify('{WAKE_CHANNEL}', notification_type)) FROM sent) AS announced FROM assigned;

COMMIT;

\\endpipeline
"""


@dataclass(frozen=True)
class Costs:
    statements: int
    round_trips: int


def costs(script: str) -> Costs:
    """Without the statement that reads the values."""
    statements, trips, in_pipeline = 0, 0, False
    for part in parts(script):
        if part == "\\startpipeline":
            in_pipeline, trips = True, trips + 1
        elif part == "\\endpipeline":
            in_pipeline = False
        else:
            statements += 1
            trips += not in_pipeline
    return Costs(statements, trips)


def parts(script: str) -> list[str]:
    """Statements and commands. A comment may hold what pgbench takes for a variable."""
    uncommented = re.sub(r"^--.*\n", "", script, flags=re.MULTILINE)
    return [part.strip() for part in re.split(r"\n\s*\n", uncommented) if part.strip()]


def write_press(bench: Bench, conn: Connection, elders: Sequence[int]) -> Script:
    homes = {row[0]: LatLon(row[1], row[2]) for row in fetch(conn, HOMES, [list(elders)])}
    rows = [{"elder_id": elder, "note": "Ekmek ve süt", **_on_the_map(homes[elder]), **ids()} for elder in elders]
    words = {"subject": "Yeni talep", "body": "Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var."}
    return write_values_and_text(bench, conn, "least_press", parts(press_script()), [row | words for row in rows])


def press_script() -> str:
    return PRESS.replace("{ranking}", VARIABLE.sub(_constant_or_variable, ON_THE_MAP.text))


def write_accept(bench: Bench, conn: Connection, asked: Sequence[tuple[int, str]]) -> Script:
    rows = [
        {"student_id": student} | accept_words(student) | ids() | {"task_id": task_id} for student, task_id in asked
    ]
    return write_values_and_text(bench, conn, "least_accept", parts(ACCEPT), rows)


def accept_words(student: int) -> dict[str, object]:
    shown = f"The phone and the place of the elder were shown to student {student}."
    return {"shown": shown, "first_name": "Person", "subject": "Yardım geliyor", "body": "Person yola çıktı!"}


def ids() -> dict[str, object]:
    """New ones, of which each deed uses some."""
    return {name: uuid7() for name in ("task_id", "action_id", "notification_id", "audit_id")}


def _on_the_map(home: LatLon) -> dict[str, float]:
    """The place of a home on the map, which could be kept beside the home, as it is for students."""
    circle = SearchCircle(home.lat, home.lon, RULES.radius_m)
    stretch, northwards = circle.halfway_stretch
    rim = {"inner_m": RULES.radius_m - circle.doubt_m, "at_most_m": RULES.radius_m + circle.doubt_m}
    here = {"x": circle.x, "y": circle.y, "outer": circle.outer, "stretch": stretch, "stretch_northwards": northwards}
    return {f"at_{name}": value for name, value in (here | rim).items()}


def _constant_or_variable(match: re.Match[str]) -> str:
    name = match[1]
    if name in CONSTANTS:
        return CONSTANTS[name]
    return f":{name}::{COLUMN_TYPES[name]}" if name in COLUMN_TYPES else f":at_{name}::float8"


HOMES = "SELECT id, ST_Y(home::geometry), ST_X(home::geometry) FROM users WHERE id = ANY(%s)"

# ---- the check ----

COUNTED = ("tasks", "offers", "actions", "notifications", "events")
COUNTS = """
SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM offers), (SELECT count(*) FROM actions),
       (SELECT count(*) FROM notifications), (SELECT count(*) FROM events) + (SELECT count(*) FROM new_events)
"""
LEAST_OFFERED, LEAST_OFFERED_IF_QUICK = 0.98, 0.5
"""Of two presses at once that choose the same student, one leaves the next choice to the matcher. Among few students
that is frequent."""

Counts = dict[str, int]


def counts(bench: Bench, database: str) -> Counts:
    with bench.connect(database) as conn:
        return dict(zip(COUNTED, fetch(conn, COUNTS)[0], strict=True))


def added(before: Counts, after: Counts) -> Counts:
    return {table: after[table] - before[table] for table in COUNTED}


def least_offered(bench: Bench) -> float:
    return LEAST_OFFERED_IF_QUICK if bench.quick else LEAST_OFFERED


def check(bench: Bench, ours: Counts, press: Counts, accept: Counts) -> None:
    """Fails if the least SQL did not write the rows of ours: those of its presses and its accepts together."""
    least = {table: press[table] + accept[table] for table in COUNTED}
    without_offer = press["tasks"] - press["offers"]
    # Such a press lacks an offer, an action, a notification and an event.
    wanted = {table: number - without_offer * (table != "tasks") for table, number in ours.items()}
    if least != wanted or press["offers"] < least_offered(bench) * press["tasks"]:
        raise AssertionError(f"the least SQL wrote {least}, and ours {ours}")
