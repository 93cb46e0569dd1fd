"""The databases, elders and processes of `ceiling`."""

import itertools
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks import city, least_sql, overload, roles
from benchmarks.bench import Bench, fetch, run
from benchmarks.city import City
from benchmarks.cores import Cores, Placement, moved, on
from benchmarks.overload import Level
from benchmarks.pgbench import Script, play
from benchmarks.processor_time import StorePids, store_pids

OURS, LEAST, RIVAL = "ceiling_ours", "ceiling_least", "ceiling_rival"
OFTEN = {"TASKS_PER_MINUTE": "1000", "TASKS_PER_HOUR": "1000"}
"""Each elder presses several times. The least SQL and the rival keep the usual limits, which nobody reaches."""
LONGEST_S = 600.0
"""A round has a number of presses, and no end in time: on a slow machine it takes longer."""

# Between two rounds, so that every round finds the same students free. In a session without triggers.
END = """
UPDATE offers o SET state = 'EXPIRED', closed_at = clock_timestamp() FROM tasks t
WHERE t.id = o.task_id AND t.elder_id BETWEEN %(first)s AND %(last)s AND o.state = 'PENDING';
UPDATE tasks SET status = 'TIMED_OUT', ended_at = clock_timestamp(), next_step_at = NULL
WHERE elder_id BETWEEN %(first)s AND %(last)s AND status = 'PENDING'
"""


class CeilingWorld:
    """The three databases, and elders who press in turns."""

    def __init__(self, bench: Bench, redis: Any) -> None:
        students = bench.size(1_000_000, 10_000)
        self.bench, self.redis, self.stores = bench, redis, store_pids(bench, redis)
        built = city.find_or_build(bench, f"city_{students}", students)
        bench.copy(f"city_{students}", OURS)
        self._every = self._add_elders(built, bench.size(60_000, 4_000))
        self._next = itertools.cycle(self._every)
        self._played = 0
        bench.copy(OURS, LEAST)
        self._script = self._write_script()
        bench.copy(LEAST, RIVAL)

    def elders(self, number: int) -> list[int]:
        return list(itertools.islice(self._next, number))

    def press(self, port: int, connections: int, presses: int) -> Level:
        return overload.press(port, self.elders(presses), connections, LONGEST_S)

    def play(self, clients: int, requests: int) -> float:
        """Plays the least SQL. Presses a second."""
        first, self._played = self._played, self._played + requests
        played = play(self.bench, LEAST, self._script, first=first, requests=requests, clients=clients)
        return len(played.latencies_ms) / played.elapsed_s

    def end_all(self, database: str) -> None:
        with self.bench.connect(database) as conn:
            run(conn, "SET session_replication_role = replica")
            for statement in END.split(";"):
                run(conn, statement, {"first": min(self._every), "last": max(self._every)})
            run(conn, "VACUUM tasks, offers")
        self.redis.flushdb()

    def _add_elders(self, built: City, wanted: int) -> list[int]:
        """At the homes of existing ones, shuffled, so that every round presses from the whole city."""
        homes = list(built.free_elders)
        with self.bench.connect(OURS) as conn:
            last = fetch(conn, "SELECT max(id) FROM users")[0][0]
            run(conn, overload.MORE_ELDERS, {"elders": homes, "times": wanted // len(homes)})
            run(conn, "VACUUM ANALYZE users")
            added = [row[0] for row in fetch(conn, "SELECT id FROM users WHERE id > %s ORDER BY id", [last])]
        random.Random(1).shuffle(added)
        return added

    def _write_script(self) -> Script:
        with self.bench.connect(LEAST) as conn:
            script = least_sql.write_press(self.bench, conn, self._every)
            run(conn, "CREATE INDEX ON least_press_values (elder_id)")
        return script


@contextmanager
def placed(stores: StorePids, placement: Placement) -> Iterator[None]:
    with moved(stores.all(), placement.service), on(placement.client):
        yield


@contextmanager
def api(bench: Bench, cores: Cores, number: int, **more: str) -> Iterator[tuple[int, int]]:
    """Yields its pid and port."""
    with ExitStack() as stack:
        with on(cores):
            started = stack.enter_context(roles.api(bench, OURS, API_WORKERS=str(number), **OFTEN, **more))
        yield started


@contextmanager
def rival(bench: Bench, cores: Cores, number: int) -> Iterator[tuple[int, int]]:
    """As `api`."""
    with ExitStack() as stack:
        with on(cores):
            started = stack.enter_context(roles.bare_presses(bench, RIVAL, number))
        yield started
