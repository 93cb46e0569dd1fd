"""Kills workers, roles and PostgreSQL while jobs run, and checks that each job ends exactly once.

    scripts/torture jobs [--kills N] [--seed S]

Every script holds a lock on a file of its job while it runs. The kernel frees the lock when the script's process ends,
so a job that runs twice at a time is found by a lock that is taken. Triggers count the ends that are recorded.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from machine.steps import ROOT

from app.cli.migrate import upgrade
from app.db.database import Database
from app.foundation.ids import uuid7
from tests.torture.stores import MARK, Stores, stores

SCRIPT = "hold_a_lock"
SOURCE = '''"""Holds the lock of its job while it runs."""

import fcntl
import time
from pathlib import Path


def run(params, context):
    folder = Path(params["folder"])
    with (folder / context.task_id).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (folder / f"{context.task_id}.twice").touch()
            raise
        time.sleep(params["s"])
    return context.task_id
'''
ROLES = 2
LEASE_S = 3
COUNT_ENDS = """
    CREATE TABLE recorded_ends (job_id uuid NOT NULL, status text NOT NULL);
    CREATE FUNCTION count_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO recorded_ends VALUES (NEW.id, NEW.status);
        RETURN NULL;
    END $$;
    CREATE TRIGGER count_end AFTER UPDATE ON jobs FOR EACH ROW
        WHEN (NEW.finished_at IS NOT NULL) EXECUTE FUNCTION count_end();
"""
ASK = """
    INSERT INTO jobs (id, name, params, task_type, status, origin, max_retries, timeout_s)
    VALUES (%s, %s, %s, %s, 'QUEUED', 'HTTP', 1000, 60)
"""
LEFT_WITHIN_S = 120


@dataclass
class Run:
    stores: Stores
    folder: Path
    rng: random.Random
    roles: "list[subprocess.Popen[bytes]]" = field(default_factory=list["subprocess.Popen[bytes]"])
    asked: list[str] = field(default_factory=list[str])
    done: threading.Event = field(default_factory=threading.Event)
    kills: Counter[str] = field(default_factory=Counter[str])

    def start_role(self) -> "subprocess.Popen[bytes]":
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scripts")]),
            MARK: str(self.stores.folder),
            "DATABASE_URL": self.stores.database_url,
            "REDIS_URL": self.stores.redis_url(),
            "AUTH_SECRET": "a-secret-for-torture-that-is-long-enough-0123456789",
            "JOBS_DIR": str(self.folder / "scripts"),
            "JOBS_LEASE_S": str(LEASE_S),
            "JOBS_MOST_CLAIMS": "1000",
            "JOBS_SCHEDULE": "[]",
        }
        log = (self.folder / "roles.log").open("ab")
        return subprocess.Popen(
            [sys.executable, "-m", "app", "jobs"], cwd=ROOT, env=environ, stdout=log, stderr=log, start_new_session=True
        )

    def keep_roles(self) -> None:
        """As a supervisor does."""
        while not self.done.wait(0.05):
            for number, role in enumerate(self.roles):
                if role.poll() is not None:
                    self.roles[number] = self.start_role()

    def ask(self) -> None:
        """A job every few milliseconds, of both kinds, some of them long enough to be hit."""
        while not self.done.is_set():
            with contextlib.suppress(psycopg.Error), self.stores.connect() as conn:
                while not self.done.wait(self.rng.uniform(0.01, 0.08)):
                    id_, task_type = str(uuid7()), self.rng.choice(["io_bound", "cpu_bound"])
                    params = {"folder": str(self.folder / "locks"), "s": self.rng.choice([0, 0.01, 0.1, 0.5])}
                    conn.execute(ASK, (id_, SCRIPT, json.dumps(params), task_type))
                    self.asked.append(id_)

    # ---- faults ----

    def fault(self) -> None:
        faults: dict[str, tuple[int, Callable[[], None]]] = {
            "worker": (6, self.kill_worker),
            "role": (4, self.kill_role),
            "role stopped for longer than its lease": (1, self.stop_role),
            "PostgreSQL": (1, self.kill_postgres),
        }
        (name,) = self.rng.choices([*faults], [weight for weight, _ in faults.values()])
        faults[name][1]()
        self.kills[name] += 1

    def kill_worker(self) -> None:
        workers = [pid for role in self.roles for pid in workers_of(role.pid)]
        if workers:
            kill(self.rng.choice(workers), signal.SIGKILL)

    def kill_role(self) -> None:
        kill(self.rng.choice(self.roles).pid, signal.SIGKILL)

    def stop_role(self) -> None:
        role = self.rng.choice(self.roles)
        kill(role.pid, signal.SIGSTOP)
        time.sleep(LEASE_S + self.rng.uniform(0, 2))
        kill(role.pid, signal.SIGCONT)

    def kill_postgres(self) -> None:
        self.stores.kill_postgres_at_once()
        self.stores.start_postgres()

    # ---- the end ----

    def wait_for_ends(self) -> None:
        until = time.monotonic() + LEFT_WITHIN_S
        with self.stores.connect() as conn:
            while left := count(conn, "SELECT count(*) FROM jobs WHERE finished_at IS NULL"):
                if time.monotonic() > until:
                    print(f"{left} jobs have not ended", file=sys.stderr)
                    return
                time.sleep(0.1)

    def findings(self) -> dict[str, int]:
        with self.stores.connect() as conn:
            committed = {str(row[0]) for row in conn.execute("SELECT id FROM jobs")}
            return {
                "lost": len(set(self.asked) - committed)
                + count(conn, "SELECT count(*) FROM jobs WHERE status <> 'SUCCEEDED'"),
                "with a result that is not theirs": count(
                    conn, "SELECT count(*) FROM jobs WHERE status = 'SUCCEEDED' AND result #>> '{}' NOT LIKE id || '.%'"
                ),
                "recorded twice": count(
                    conn,
                    "SELECT count(*) FROM (SELECT FROM recorded_ends GROUP BY job_id HAVING count(*) > 1) AS twice",
                ),
                "running twice at a time": len([*(self.folder / "locks").glob("*.twice")]),
            }


def count(conn: "psycopg.Connection[Any]", statement: str) -> int:
    row = conn.execute(statement).fetchone()  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert row is not None
    return int(row[0])


def workers_of(pid: int) -> Iterator[int]:
    """The children of the fork server and of the resource tracker are the only ones that the role has."""
    for child in children(pid):
        yield from children(child)


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in task.read_text().split()]
    return found


def kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def torture(run: Run, kills: int) -> dict[str, int]:
    database = Database(run.stores.database_url, pool_size=1, statement_timeout_ms=0)
    upgrade(database.engine)
    database.close()
    with run.stores.connect() as conn:
        conn.execute(COUNT_ENDS)
    run.roles += [run.start_role() for _ in range(ROLES)]
    threads = [threading.Thread(target=target, daemon=True) for target in (run.keep_roles, run.ask)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    while run.kills.total() < kills:
        time.sleep(run.rng.uniform(0.05, 0.6))
        run.fault()
        if run.kills.total() % 10 == 0:
            print(f"{run.kills.total()} of {kills} faults, {len(run.asked)} jobs", file=sys.stderr, flush=True)
    asking = threads[1]
    run.done.set()
    asking.join()
    run.done.clear()
    keeping = threading.Thread(target=run.keep_roles, daemon=True)
    keeping.start()
    run.wait_for_ends()
    run.done.set()
    keeping.join()
    for role in run.roles:
        role.send_signal(signal.SIGTERM)
    for role in run.roles:
        role.wait(60)
    return run.findings()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/torture jobs", description=__doc__.partition("\n")[0] if __doc__ else None
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    options = parser.parse_args(argv)
    with stores() as started:
        # Readable for whoever the roles run as.
        folder = started.folder / "jobs"
        (folder / "scripts").mkdir(parents=True)
        (folder / "locks").mkdir()
        (folder / "scripts" / f"{SCRIPT}.py").write_text(SOURCE)
        run = Run(started, folder, random.Random(options.seed))
        found = torture(run, options.kills)
        ended = len(run.asked)
        if any(found.values()):
            print((folder / "roles.log").read_text()[-5000:], file=sys.stderr)
    faults = ", ".join(f"{number} times {name}" for name, number in sorted(run.kills.items()))
    print(f"seed {options.seed}; {run.kills.total()} faults: {faults}")
    print(f"{ended} jobs: " + ", ".join(f"{number} {what}" for what, number in found.items()))
    return 1 if any(found.values()) else 0
