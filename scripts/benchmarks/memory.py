"""The memory of each role while a hundred thousand tasks are open."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from app.redis_store import keys
from benchmarks import neighbourhoods, roles
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, fetch, run, say
from benchmarks.client import Tokens, all_at_once
from benchmarks.figures import number
from benchmarks.report import Row, Section

DATABASE, EMPTY = "memory", "memory_empty"
GOAL_MB = 250
TITLE = (
    "memory: MB of all processes of a role (PSS: shared pages are counted once), after work; floor: as many"
    " interpreters with the same libraries"
)

SHARED = "import psycopg, pydantic, redis, sqlalchemy, structlog, prometheus_client"
LIBRARIES = {
    "api": f"{SHARED}, flask, uvicorn, httptools, limits, jwt; import os; os.fork() and os.fork()",
    "matcher": SHARED,
    "delivery": f"{SHARED}, requests, google.oauth2.service_account",
}
ADD_COORDINATOR = "INSERT INTO users (role, name) VALUES ('COORDINATOR', 'Bench') RETURNING id"
# Makes offers due, so that the matcher handles batches and delivery has pushes to send.
MAKE_DUE = """
WITH due AS (SELECT id FROM tasks ORDER BY id LIMIT %(most)s),
     over AS (UPDATE offers SET deadline = clock_timestamp() FROM due WHERE task_id = due.id AND state = 'PENDING')
UPDATE tasks SET next_step_at = clock_timestamp() FROM due WHERE tasks.id = due.id
"""
UNFINISHED = "SELECT count(*) FILTER (WHERE finished_at IS NULL), count(*) FROM notifications"

Figures = dict[str, dict[str, float]]


def measure(bench: Bench) -> Section:
    tasks = bench.size(100_000, 2_000)
    bench.create(EMPTY)
    with bench.redis(), running(bench, EMPTY) as (pids, port):
        say("memory of the roles without tasks")
        _list_tasks(bench, EMPTY, port, bench.size(200, 20))
        empty = _memory(pids)
    bench.drop(EMPTY)
    with keeping(lambda: Section("memory", TITLE, [], _notes_without_tasks(empty))):
        full = _with_tasks(bench, tasks)
    bench.drop(DATABASE)
    rows = [_row(name, full[name], empty[name]) for name in LIBRARIES]
    rows.append(_together(full, bench.quick))
    notes = [_note(name, tasks, full[name], empty[name]) for name in LIBRARIES]
    return Section("memory", TITLE, rows, notes)


def _row(name: str, full: dict[str, float], empty: dict[str, float]) -> Row:
    return Row(name, full["Pss"], _floor(name), facts={"full": full, "empty": empty})


def _together(full: Figures, quick: bool) -> Row:
    whole_mb, floor_mb = sum(full[name]["Pss"] for name in LIBRARIES), sum(map(_floor, LIBRARIES))
    return Row("all three", whole_mb, floor_mb, goal=f"<{GOAL_MB}", met=None if quick else whole_mb < GOAL_MB)


def _note(name: str, tasks: int, full: dict[str, float], empty: dict[str, float]) -> str:
    return (
        f"{name}: {number(empty['Pss'])} MB without tasks, {number(full['Pss'])} MB with {tasks:,};"
        f" RSS {number(full['Rss'])} MB, at most {number(full['VmHWM'])} MB"
    )


def _notes_without_tasks(empty: Figures) -> list[str]:
    return [f"{name}: {number(empty[name]['Pss'])} MB without tasks" for name in LIBRARIES]


def _with_tasks(bench: Bench, tasks: int) -> Figures:
    due = tasks // 50
    world = neighbourhoods.build(bench, DATABASE, tasks, 2)
    with bench.redis() as client:
        neighbourhoods.fill_lists(bench, DATABASE, world, client)
        with running(bench, DATABASE) as (pids, port):
            say(f"memory of the roles with {tasks:,} open tasks; {due:,} offers fall due")
            roles.eventually(lambda: client.get(keys.SENTINEL) == "1", 600)
            assert client.zcard(keys.DEADLINES) == tasks, "Redis must hold every deadline"
            with bench.connect(DATABASE) as conn:
                run(conn, MAKE_DUE, {"most": due})
                roles.eventually(lambda: _all_sent(conn, due), 600)
            _list_tasks(bench, DATABASE, port, bench.size(1_000, 20))
            return _memory(pids)


@contextmanager
def running(bench: Bench, database: str) -> Iterator[tuple[dict[str, int], int]]:
    with ExitStack() as stack:
        matcher = stack.enter_context(roles.role(bench, "matcher", database))
        delivery = stack.enter_context(roles.role(bench, "delivery", database))
        api, port = stack.enter_context(roles.api(bench, database))
        yield {"api": api, "matcher": matcher, "delivery": delivery}, port


def _all_sent(conn: Any, at_least: int) -> bool:
    waiting, written = fetch(conn, UNFINISHED)[0]
    return written >= at_least and waiting == 0


def _list_tasks(bench: Bench, database: str, port: int, requests: int) -> None:
    """A coordinator reads the list of tasks again and again."""
    with bench.connect(database) as conn:
        coordinator = fetch(conn, ADD_COORDINATOR)[0][0]
    request = Tokens().request(coordinator, "GET", "/tasks?limit=100")
    all_at_once(port, [request] * requests, expected=200, connections=8)


def _memory(pids: dict[str, int]) -> Figures:
    return {
        name: {field: roles.memory_mb(pid, field) for field in ("Pss", "Rss", "VmHWM")} for name, pid in pids.items()
    }


def _floor(name: str) -> float:
    code = f"{LIBRARIES[name]}\nimport time\nprint('ready', flush=True)\ntime.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        for _ in range(3 if name == "api" else 1):
            process.stdout.readline()
        return roles.memory_mb(process.pid, "Pss")
    finally:
        roles.kill_tree(process.pid)
        process.wait()
