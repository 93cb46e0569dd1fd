"""What each role holds in memory once a hundred thousand tasks are open."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from app.redis_store import keys
from benchmarks import neighbourhoods, roles
from benchmarks.bench import Bench, fetch, run, say
from benchmarks.client import Tokens, all_at_once
from benchmarks.figures import number
from benchmarks.report import Row, Section

DATABASE, EMPTY = "memory", "memory_empty"
TITLE = (
    "memory: MB of a role with all its processes (PSS: what they share is counted once), after work; floor: an"
    " interpreter with the same libraries"
)

SHARED = "import psycopg, pydantic, redis, sqlalchemy, structlog, prometheus_client"
LIBRARIES = {
    "api": f"{SHARED}, flask, gunicorn.app.base, limits, jwt; import os; os.fork() and os.fork()",
    "matcher": SHARED,
    "delivery": f"{SHARED}, requests, google.oauth2.service_account",
}
ADD_COORDINATOR = "INSERT INTO users (role, name) VALUES ('COORDINATOR', 'Bench') RETURNING id"
# So many deadlines fall due, so the matcher goes through batches and delivery gets something to send.
MAKE_DUE = """
WITH due AS (SELECT id FROM tasks ORDER BY id LIMIT %(most)s),
     over AS (UPDATE offers SET deadline = clock_timestamp() FROM due WHERE task_id = due.id AND state = 'PENDING')
UPDATE tasks SET next_step_at = clock_timestamp() FROM due WHERE tasks.id = due.id
"""
WAITING = "SELECT count(*) FILTER (WHERE finished_at IS NULL), count(*) FROM notifications"

Figures = dict[str, dict[str, float]]


def measure(bench: Bench) -> Section:
    tasks = bench.size(100_000, 2_000)
    due = tasks // 50
    bench.create(EMPTY)
    with bench.redis(), running(bench, EMPTY) as (pids, port):
        say("memory of the roles with nothing to do")
        _visit(bench, EMPTY, port, bench.size(200, 20))
        empty = _look(pids)
    bench.drop(EMPTY)
    world = neighbourhoods.build(bench, DATABASE, tasks, 2)
    with bench.redis() as client:
        neighbourhoods.fill_lists(bench, DATABASE, world, client)
        with running(bench, DATABASE) as (pids, port):
            say(f"memory of the roles with {tasks:,} open tasks; {due:,} offers run out")
            roles.eventually(lambda: client.get(keys.SENTINEL) == "1", 600)
            assert client.zcard(keys.DEADLINES) == tasks, "Redis holds every deadline"
            with bench.connect(DATABASE) as conn:
                run(conn, MAKE_DUE, {"most": due})
                roles.eventually(lambda: _all_sent(conn, due), 600)
            _visit(bench, DATABASE, port, bench.size(1_000, 20))
            full = _look(pids)
    bench.drop(DATABASE)
    rows = [_row(name, full[name], empty[name]) for name in LIBRARIES]
    notes = [_note(name, tasks, full[name], empty[name]) for name in LIBRARIES]
    return Section("memory", TITLE, rows, notes)


def _row(name: str, full: dict[str, float], empty: dict[str, float]) -> Row:
    return Row(name, full["Pss"], _floor(name), facts={"full": full, "empty": empty})


def _note(name: str, tasks: int, full: dict[str, float], empty: dict[str, float]) -> str:
    return (
        f"{name}: {number(empty['Pss'])} MB without tasks, {number(full['Pss'])} MB with {tasks:,};"
        f" RSS {number(full['Rss'])} MB, at most {number(full['VmHWM'])} MB"
    )


@contextmanager
def running(bench: Bench, database: str) -> Iterator[tuple[dict[str, int], int]]:
    with ExitStack() as stack:
        matcher = stack.enter_context(roles.role(bench, "matcher", database))
        delivery = stack.enter_context(roles.role(bench, "delivery", database))
        api, port = stack.enter_context(roles.api(bench, database))
        yield {"api": api, "matcher": matcher, "delivery": delivery}, port


def _all_sent(conn: Any, at_least: int) -> bool:
    waiting, written = fetch(conn, WAITING)[0]
    return written >= at_least and waiting == 0


def _visit(bench: Bench, database: str, port: int, requests: int) -> None:
    """A coordinator pages through the list of tasks."""
    with bench.connect(database) as conn:
        coordinator = fetch(conn, ADD_COORDINATOR)[0][0]
    request = Tokens().request(coordinator, "GET", "/tasks?limit=100")
    all_at_once(port, [request] * requests, expected=200, connections=8)


def _look(pids: dict[str, int]) -> Figures:
    return {
        name: {field: roles.memory_mb(pid, field) for field in ("Pss", "Rss", "VmHWM")} for name, pid in pids.items()
    }


def _floor(name: str) -> float:
    code = f"{LIBRARIES[name]}\nimport time\nprint('there', flush=True)\ntime.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        for _ in range(3 if name == "api" else 1):
            process.stdout.readline()
        return roles.memory_mb(process.pid, "Pss")
    finally:
        roles.kill_family(process.pid)
        process.wait()
