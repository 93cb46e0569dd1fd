"""Generates students and elders who are spread as in a city: 400 neighbourhoods, each dense in its middle.

A smaller city is the same city with fewer students, so the circle around an elder holds fewer. One student in ten is
off duty, one in fifty has a task, one in a hundred has a live offer, and one in ten has a count of completed tasks
from an earlier month. The tables `rival_…` and `floor_…` of rival and floor hold the same people.
"""

import math
from dataclasses import dataclass

from app.users.models import LatLon
from benchmarks.bench import Bench, Connection, fetch, run, say
from benchmarks.loading import without_indexes

RADIUS_M = 1000.0
AT_FULL_SIZE = (1_000_000, 1_000)
"""Students at full size, and about how many of them are available within the radius of an elder."""


@dataclass(frozen=True)
class City:
    """Ids: students from 1, then elders without an open task, then elders with one."""

    students: int

    @property
    def free_elders(self) -> range:
        first = self.students + 1
        return range(first, first + max(self.students // 100, 1_000))

    @property
    def assigned(self) -> int:
        return self.students // 50

    @property
    def being_asked(self) -> int:
        return self.students // 100

    @property
    def busy_elders(self) -> range:
        first = self.free_elders.stop
        return range(first, first + self.assigned + self.being_asked)

    @property
    def expected_in_circle(self) -> float:
        students, in_circle = AT_FULL_SIZE
        return self.students * in_circle / students


PLACES = """
CREATE TABLE bench_places AS
SELECT row_number() OVER () AS id, ST_SetSRID(ST_MakePoint(
           c.lon + (random() + random() + random() - 1.5) * 0.05,
           c.lat + (random() + random() + random() - 1.5) * 0.04), 4326)::geography AS place
FROM generate_series(1, {people}) g
JOIN (SELECT i, 41.0 + (random() - 0.5) * 0.5 AS lat, 29.0 + (random() - 0.5) * 0.8 AS lon
      FROM generate_series(0, 399) i) c ON c.i = g % 400
"""

PEOPLE = """
INSERT INTO users (id, role, name, phone, home)
SELECT id, CASE WHEN id <= {students} THEN 'STUDENT' ELSE 'ELDER' END, 'Person ' || id, '+90555' || id,
       CASE WHEN id > {students} THEN place END
FROM bench_places;

INSERT INTO students (id, location, month, completed, on_duty, open_task_id)
SELECT id, place,
       (date_trunc('month', now() AT TIME ZONE '{zone}')
        - CASE WHEN random() < 0.1 THEN interval '1 month' ELSE interval '0' END)::date,
       floor(random() * 9)::int, random() < 0.9, CASE WHEN id % 50 = 0 THEN {held} END
FROM bench_places WHERE id <= {students};
"""

# Every fiftieth student has a task. Every hundredth, counted from another start, has a live offer.
TASKS = """
INSERT INTO tasks (id, status, elder_id, student_id, location, created_at, updated_at, search_until, next_step_at,
                   assigned_at, listed, asked)
SELECT {held}, 'ASSIGNED', {first_busy} + id / 50 - 1, id, place, now, now, now + interval '1 hour',
       now + interval '4 hours', now, 1, 1
FROM bench_places, (SELECT clock_timestamp() AS now) clock WHERE id <= {students} AND id % 50 = 0;

INSERT INTO tasks (id, status, elder_id, location, created_at, updated_at, search_until, next_step_at, listed, asked)
SELECT {asking}, 'PENDING', {first_busy} + {assigned} + id / 100, place, now, now, now + interval '1 day',
       now + interval '10 hours', 50, 1
FROM bench_places, (SELECT clock_timestamp() AS now) clock WHERE id <= {students} AND id % 100 = 1;

INSERT INTO offers (task_id, student_id, state, rank, distance_m, offered_at, deadline, closed_at)
SELECT CASE WHEN id % 50 = 0 THEN {held} ELSE {asking} END, id,
       CASE WHEN id % 50 = 0 THEN 'ACCEPTED' ELSE 'PENDING' END, 1, 0, now, now + interval '10 hours',
       CASE WHEN id % 50 = 0 THEN now END
FROM bench_places, (SELECT clock_timestamp() AS now) clock WHERE id <= {students} AND (id % 50 = 0 OR id % 100 = 1);
"""

# The schema of a plain implementation: one table of people with a location, and tasks to be counted, indexed.
RIVAL = """
CREATE TABLE rival_users AS
SELECT u.id, u.role, u.name, u.phone, coalesce(s.active AND s.on_duty, u.active) AS is_active,
       coalesce(s.location, u.home) AS location
FROM users u LEFT JOIN students s ON s.id = u.id;
ALTER TABLE rival_users ADD PRIMARY KEY (id);
CREATE INDEX ON rival_users USING gist (location);

CREATE TABLE rival_tasks AS
SELECT s.id AS student_id, 'COMPLETED' AS status,
       s.month::timestamp AT TIME ZONE '{zone}' + interval '1 minute' * one AS ended_at
FROM students s CROSS JOIN LATERAL generate_series(1, s.completed) one
UNION ALL SELECT id, 'ASSIGNED', NULL FROM students WHERE open_task_id IS NOT NULL;
ALTER TABLE rival_tasks ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY;
CREATE INDEX ON rival_tasks (student_id, ended_at) WHERE status = 'COMPLETED';
CREATE INDEX ON rival_tasks (student_id) WHERE status IN ('ASSIGNED', 'STARTED');
"""

FLOOR = """
CREATE TABLE floor_students AS
SELECT id, completed, ST_Transform(location::geometry, 3395) AS plane FROM students ORDER BY plane;
CREATE INDEX ON floor_students USING gist (plane);
"""


# Some students move a few metres. Until the next VACUUM, PostgreSQL must check in the table whether the row of an index
# tuple is visible. Ours, floor and rival get the same moves.
STOP_AUTOVACUUM = """
ALTER TABLE students SET (autovacuum_enabled = false);
ALTER TABLE rival_users SET (autovacuum_enabled = false);
ALTER TABLE floor_students SET (autovacuum_enabled = false);
"""
MOVE = """
UPDATE students SET location = ST_Project(location, 20, random() * 6) WHERE id % {every} = 0;
UPDATE rival_users u SET location = s.location FROM students s WHERE s.id = u.id AND s.id % {every} = 0;
UPDATE floor_students f SET plane = ST_Transform(s.location::geometry, 3395)
FROM students s WHERE s.id = f.id AND s.id % {every} = 0;
"""


def task_id_of(kind: str, column: str = "id") -> str:
    """SQL of an id that grows with `column`, as version 7 does. The digit `kind` tells groups of ids apart."""
    return f"('0190000{kind}-0000-7000-8000-' || lpad(to_hex({column}), 12, '0'))::uuid"


HELD = task_id_of("1")
ASKING = task_id_of("2")


def build(bench: Bench, database: str, students: int) -> City:
    city = City(students)
    say(f"generating a city of {students:,} students")
    bench.create(database)
    values = {
        "people": city.busy_elders.stop - 1,
        "students": students,
        "first_busy": city.busy_elders.start,
        "assigned": city.assigned,
        "zone": "Europe/Istanbul",
        "held": HELD,
        "asking": ASKING,
    }
    with bench.connect(database) as conn:
        run(conn, "SELECT setseed(0.42)")
        run(conn, PLACES.format(**values))
        with without_indexes(conn, "users", "students"):
            run(conn, PEOPLE.format(**values))
        with without_indexes(conn, "tasks", "offers"):
            run(conn, TASKS.format(**values))
        run(conn, "DROP TABLE bench_places")
        run(conn, RIVAL.format(**values))
        run(conn, FLOOR)
        run(conn, "SELECT setval(pg_get_serial_sequence('users', 'id'), %s)", [values["people"]])
        run(conn, "VACUUM ANALYZE")
    return city


def move_students(bench: Bench, database: str, *, every: int) -> None:
    say(f"moving every {every}th student a few metres")
    with bench.connect(database) as conn:
        run(conn, STOP_AUTOVACUUM)
        run(conn, MOVE.format(every=every))


def find_or_build(bench: Bench, database: str, students: int) -> City:
    """The city that an earlier measurement left, or a new one."""
    with bench.connect("maintenance") as conn:
        found = fetch(conn, "SELECT FROM pg_database WHERE datname = %s", [database])
    return City(students) if found else build(bench, database, students)


IN_CIRCLE = """
SELECT e.id, ST_Y(e.home::geometry), ST_X(e.home::geometry),
       (SELECT count(*) FROM rival_users u
           WHERE u.role = 'STUDENT' AND u.is_active AND ST_DWithin(u.location, e.home, %(radius_m)s)
           AND NOT EXISTS (SELECT FROM rival_tasks t WHERE t.student_id = u.id AND t.status = 'ASSIGNED'))
FROM users e WHERE e.id = ANY(%(elders)s)
"""


@dataclass(frozen=True)
class Home:
    elder_id: int
    spot: LatLon


def homes(conn: Connection, city: City, how_many: int) -> list[Home]:
    """Homes of elders without a task where the number of students within the radius is nearest to the expected."""
    elders = list(city.free_elders)[: 20 * how_many]
    found = fetch(conn, IN_CIRCLE, {"radius_m": RADIUS_M, "elders": elders})
    fitting = sorted(found, key=lambda row: abs(math.log(max(row[3], 0.1) / city.expected_in_circle)))
    return [Home(row[0], LatLon(row[1], row[2])) for row in fitting[:how_many]]


def spots(conn: Connection, city: City, how_many: int) -> list[LatLon]:
    return [home.spot for home in homes(conn, city, how_many)]
