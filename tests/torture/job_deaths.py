"""Kills workers, roles and PostgreSQL while jobs run, and checks that each job ends exactly once.

    scripts/torture jobs [--kills N] [--seed S] [--engine embedded|dask]

Every script holds a lock on a file of its job while it runs. The kernel frees the lock when the script's process ends,
so a job that runs twice at a time is found by a lock that is taken. Triggers count the ends that are recorded.
With `--engine dask` the jobs run on a cluster, whose scheduler and workers are killed and stopped, too.
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
from typing import TYPE_CHECKING, Any

import psycopg
from machine.steps import ROOT

from app.cli.migrate import upgrade
from app.db.database import Database
from app.foundation.ids import uuid7
from app.jobs.engine.options import EngineOptions
from tests.torture.stores import MARK, Stores, stores

if TYPE_CHECKING:
    from tests.support.cluster import Cluster

SCRIPT = "hold_a_lock"
SOURCE = '''"""Holds the lock of its job while it runs."""

import fcntl
import time
from pathlib import Path


def run(params, context):
    folder = Path(params["folder"])
    # Without the number of the claim: two claims of one job must not run at a time.
    job = context.task_id.partition(".")[0]
    with (folder / job).open("a") as file:
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
CLUSTER_LEASE_S = 3.0
WORKER_LOST_S = 6.0
SHORT = [0, 0.01, 0.1, 0.5]
SECONDS = {"cpu_bound": SHORT, "io_bound": [*SHORT * 4, 5]}
"""The longest outlive the lease of a role that was killed, so that another one claims a job that still runs."""
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


Process = subprocess.Popen[bytes]


@dataclass
class Run:
    stores: Stores
    folder: Path
    rng: random.Random
    cluster: "Cluster | None"
    roles: list[Process] = field(default_factory=list[Process])
    asked: list[str] = field(default_factory=list[str])
    asked_all: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    kills: Counter[str] = field(default_factory=Counter[str])

    def start_role(self) -> Process:
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
        if self.cluster is not None:
            environ |= {
                "JOBS_ENGINE": f"dask://127.0.0.1:{self.cluster.port}",
                "JOBS_TLS_DIR": str(self.cluster.tls.key.parent),
            }
        log = (self.folder / "roles.log").open("ab")
        return subprocess.Popen(
            [sys.executable, "-m", "app", "jobs"], cwd=ROOT, env=environ, stdout=log, stderr=log, start_new_session=True
        )

    def keep_alive(self) -> None:
        """As a supervisor does."""
        while not self.done.wait(0.05):
            start_again(self.roles, self.start_role)
            if self.cluster is not None:
                start_again(self.cluster.workers, self.cluster.start_worker)
                if self.cluster.scheduler.poll() is not None:
                    self.cluster.start_scheduler()

    def ask(self) -> None:
        """A job every few milliseconds, of both kinds, some of them long enough to be hit."""
        while not self.asked_all.is_set():
            with contextlib.suppress(psycopg.Error), self.stores.connect() as conn:
                while not self.asked_all.wait(self.rng.uniform(0.01, 0.08)):
                    id_, task_type = str(uuid7()), self.rng.choice([*SECONDS])
                    params = {"folder": str(self.folder / "locks"), "s": self.rng.choice(SECONDS[task_type])}
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
        if (cluster := self.cluster) is not None:
            faults |= {
                "machine": (4, lambda: kill(self.rng.choice(cluster.workers).pid, signal.SIGKILL)),
                "scheduler": (2, lambda: kill(cluster.scheduler.pid, signal.SIGKILL)),
                "machine stopped": (1, lambda: self.stop(self.rng.choice(cluster.workers), 2 * WORKER_LOST_S)),
                "scheduler stopped": (1, lambda: self.stop(cluster.scheduler, 2 * WORKER_LOST_S)),
            }
        (name,) = self.rng.choices([*faults], [weight for weight, _ in faults.values()])
        faults[name][1]()
        self.kills[name] += 1

    def kill_worker(self) -> None:
        engines = self.roles if self.cluster is None else self.cluster.workers
        workers = [pid for engine in engines for pid in workers_of(engine.pid)]
        if workers:
            kill(self.rng.choice(workers), signal.SIGKILL)

    def kill_role(self) -> None:
        kill(self.rng.choice(self.roles).pid, signal.SIGKILL)

    def stop_role(self) -> None:
        self.stop(self.rng.choice(self.roles), LEASE_S + 2, LEASE_S)

    def stop(self, process: Process, at_most_s: float, at_least_s: float = 0.5) -> None:
        kill(process.pid, signal.SIGSTOP)
        time.sleep(self.rng.uniform(at_least_s, at_most_s))
        kill(process.pid, signal.SIGCONT)

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
            for row in conn.execute("SELECT id, status, fence, error FROM jobs WHERE status <> 'SUCCEEDED' LIMIT 10"):
                print(*row, file=sys.stderr)
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


def start_again(kept: list[Process], start: Callable[[], Process]) -> None:
    for number, process in enumerate(kept):
        if process.poll() is not None:
            kept[number] = start()


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
    # One thread until the end, because the processes of the cluster die with the thread that has started them.
    keeping, asking = (threading.Thread(target=target, daemon=True) for target in (run.keep_alive, run.ask))
    keeping.start()
    asking.start()
    time.sleep(2)
    while run.kills.total() < kills:
        time.sleep(run.rng.uniform(0.05, 0.6))
        run.fault()
        if run.kills.total() % 10 == 0:
            print(f"{run.kills.total()} of {kills} faults, {len(run.asked)} jobs", file=sys.stderr, flush=True)
    run.asked_all.set()
    asking.join()
    run.wait_for_ends()
    run.done.set()
    keeping.join()
    for role in run.roles:
        role.send_signal(signal.SIGTERM)
    for role in run.roles:
        role.wait(60)
    return run.findings()


def cluster_in(folder: Path) -> "Cluster":
    # Here, because the packages of the cluster are installed only where one is used.
    from tests.support.cluster import Cluster

    folder.mkdir()
    return Cluster(folder, EngineOptions(), worker_lost_s=WORKER_LOST_S, lease_s=CLUSTER_LEASE_S)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/torture jobs", description=__doc__.partition("\n")[0] if __doc__ else None
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--engine", choices=["embedded", "dask"], default="embedded")
    options = parser.parse_args(argv)
    with stores() as started, contextlib.ExitStack() as opened:
        # Readable for whoever the roles run as.
        folder = started.folder / "jobs"
        (folder / "scripts").mkdir(parents=True)
        (folder / "locks").mkdir()
        (folder / "scripts" / f"{SCRIPT}.py").write_text(SOURCE)
        cluster = opened.enter_context(cluster_in(folder / "cluster")) if options.engine == "dask" else None
        run = Run(started, folder, random.Random(options.seed), cluster)
        found = torture(run, options.kills)
        ended = len(run.asked)
        if any(found.values()):
            print((folder / "roles.log").read_text()[-5000:], file=sys.stderr)
    faults = ", ".join(f"{number} times {name}" for name, number in sorted(run.kills.items()))
    print(f"seed {options.seed}; {run.kills.total()} faults: {faults}")
    print(f"{ended} jobs: " + ", ".join(f"{number} {what}" for what, number in found.items()))
    return 1 if any(found.values()) else 0
