"""Generates elders with one open task each, so far apart that no student is within the radius of two of them.

Student `n` of a task is the `n`th on its list; the first has a live offer from the start. Bystanders are additional
open tasks, far away, whose live offers end after ten hours.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.redis_store import keys
from benchmarks.bench import Bench, fetch, run, say
from benchmarks.city import task_id_of
from benchmarks.loading import without_indexes

CHUNK = 10_000


@dataclass(frozen=True)
class Neighbourhoods:
    tasks: int
    students_each: int
    bystanders: int

    @property
    def people(self) -> int:
        """The number of people without the bystanders, whose ids follow."""
        return self.tasks * (1 + self.students_each)

    def student(self, task: int, place: int) -> int:
        """The id of a student; both arguments count from 1. The id of an elder is the number of the task."""
        return self.tasks + (task - 1) * self.students_each + place


FARTHEST_DEGREES, APART_DEGREES = 0.0085, 0.00055
"""Of latitude: 945 m and 61 m. With more than 15 students for each elder they stand closer together, because a student
beyond 1,000 m is not asked, and the task would run out of candidates."""

# A grid with at least 3 km between elders; the students stand in a row to the north of each.
PEOPLE = """
CREATE TABLE bench_grid AS
SELECT n, 30 + (n / 320) * 0.035 AS lat, 20 + (n % 320) * 0.05 AS lon FROM generate_series(1, {tasks}) n;

INSERT INTO users (id, role, name, phone, home)
SELECT n, 'ELDER', 'Elder ' || n, '+90555' || n, ST_SetSRID(ST_MakePoint(lon, lat), 4326)::geography FROM bench_grid;

INSERT INTO users (id, role, name)
SELECT {tasks} + (n - 1) * {each} + place, 'STUDENT', 'Student ' || n || '/' || place
FROM bench_grid, generate_series(1, {each}) place;

INSERT INTO students (id, location)
SELECT {tasks} + (n - 1) * {each} + place,
       ST_SetSRID(ST_MakePoint(lon, lat + place * {apart}), 4326)::geography
FROM bench_grid, generate_series(1, {each}) place;
"""

TASKS = """
INSERT INTO tasks (id, status, elder_id, location, created_at, updated_at, search_until, next_step_at, listed, asked)
SELECT {id}, 'PENDING', n, ST_SetSRID(ST_MakePoint(lon, lat), 4326)::geography, now, now - interval '1 hour',
       now + interval '1 day', now + interval '10 hours', {each}, 1
FROM bench_grid, (SELECT clock_timestamp() AS now) clock;

INSERT INTO offers (task_id, student_id, state, rank, distance_m, offered_at, deadline)
SELECT {id}, {tasks} + (n - 1) * {each} + 1, 'PENDING', 1, 61, now, now + interval '10 hours'
FROM bench_grid, (SELECT clock_timestamp() AS now) clock;

DROP TABLE bench_grid;
"""

# In the southern hemisphere, because the grid above is in the northern.
BYSTANDERS = """
CREATE TABLE bench_bystanders AS
SELECT n, ST_SetSRID(ST_MakePoint((n % 1000) * 0.02, -(n / 1000) * 0.02), 4326)::geography AS place
FROM generate_series(1, {bystanders}) n;

INSERT INTO users (id, role, name, phone, home)
SELECT {people} + n, 'ELDER', 'Elder ' || n, '+90555' || n, place FROM bench_bystanders
UNION ALL SELECT {people} + {bystanders} + n, 'STUDENT', 'Student ' || n, NULL, NULL FROM bench_bystanders;

INSERT INTO students (id, location) SELECT {people} + {bystanders} + n, place FROM bench_bystanders;

INSERT INTO tasks (id, status, elder_id, location, created_at, updated_at, search_until, next_step_at, listed, asked)
SELECT {id}, 'PENDING', {people} + n, place, now, now - interval '1 hour', now + interval '1 day',
       now + interval '10 hours', 1, 1
FROM bench_bystanders, (SELECT clock_timestamp() AS now) clock;

INSERT INTO offers (task_id, student_id, state, rank, distance_m, offered_at, deadline)
SELECT {id}, {people} + {bystanders} + n, 'PENDING', 1, 0, now, now + interval '10 hours'
FROM bench_bystanders, (SELECT clock_timestamp() AS now) clock;

DROP TABLE bench_bystanders;
"""

FIRST_BYSTANDER = task_id_of("4", "0")
"""SQL of an id below which the ids of all other tasks are."""


def build(bench: Bench, database: str, tasks: int, students_each: int, bystanders: int = 0) -> Neighbourhoods:
    world = Neighbourhoods(tasks, students_each, bystanders)
    say(f"generating {tasks:,} open tasks with {students_each} students each, and {bystanders:,} bystanders")
    bench.create(database)
    apart = min(APART_DEGREES, FARTHEST_DEGREES / students_each)
    values = {"tasks": tasks, "each": students_each, "apart": apart, "id": task_id_of("3", "n")}
    others = {"bystanders": bystanders, "people": world.people, "id": task_id_of("4", "n")}
    with bench.connect(database) as conn:
        with without_indexes(conn, "users", "students", "tasks", "offers"):
            run(conn, PEOPLE.format(**values))
            run(conn, TASKS.format(**values))
            run(conn, BYSTANDERS.format(**others))
        run(conn, "SELECT setval(pg_get_serial_sequence('users', 'id'), (SELECT max(id) FROM users))")
        run(conn, "VACUUM ANALYZE")
        run(conn, "CHECKPOINT")  # Otherwise the first measurement would share the disk with the writes of this data.
    return world


# The students who were never asked, by id, which here is the order of distance.
LISTS = """
SELECT t.id::text, array_agg(s.id ORDER BY s.id)
FROM tasks t JOIN students s ON s.id > {tasks} + (t.elder_id - 1) * {each} AND s.id <= {tasks} + t.elder_id * {each}
WHERE t.status = 'PENDING' AND t.elder_id <= {tasks}
  AND NOT EXISTS (SELECT FROM offers o WHERE o.task_id = t.id AND o.student_id = s.id)
GROUP BY t.id
"""


# KEYS 1 offer_deadlines  ARGV 1 first  2 last  3 id of the student before the first  4 deadline in ms
WRITE_BYSTANDER_KEYS = """
for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do
  local id = string.format('01900004-0000-7000-8000-%012x', n)
  redis.call('SET', 'pending_assignment:' .. id, ARGV[3] + n, 'PXAT', ARGV[4] + n)
  redis.call('RPUSH', 'task_candidates:' .. id, 1, 2, 3)
  redis.call('ZADD', KEYS[1], ARGV[4] + n, id)
end
"""


def write_bystander_keys(world: Neighbourhoods, client: Any) -> None:
    """Writes the keys of the bystanders to Redis, as the application would."""
    say(f"writing the keys of {world.bystanders:,} bystanders to Redis")
    script = client.register_script(WRITE_BYSTANDER_KEYS)
    until_ms = int(time.time() * 1000) + 36_000_000
    for first in range(1, world.bystanders + 1, CHUNK):
        last = min(first + CHUNK - 1, world.bystanders)
        script(keys=[keys.DEADLINES], args=[first, last, world.people + world.bystanders, until_ms])


def fill_lists(bench: Bench, database: str, world: Neighbourhoods, client: Any) -> dict[str, list[int]]:
    """Writes the candidate list of each task, from the students not asked yet, to Redis. Returns the lists."""
    with bench.connect(database) as conn:
        lists = dict(fetch(conn, LISTS.format(tasks=world.tasks, each=world.students_each)))
    for chunk in _chunks(sorted(lists)):
        pipe = client.pipeline(transaction=False)
        for task_id in chunk:
            key = f"task_candidates:{task_id}"
            pipe.delete(key)
            pipe.rpush(key, *lists[task_id])
            pipe.expire(key, 36_000)
        pipe.execute()
    return lists


def _chunks(items: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]
