"""Injects faults, one at a time and several at once, and records when."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psycopg

from tests.torture.fault_windows import Window
from tests.torture.proxy import Proxy
from tests.torture.roles import Instance, Roles
from tests.torture.stores import SkewedClock, Stores

AHEAD_S = 900
LONG_S = 10.0
"""How long a pause or a lock lasts."""


@dataclass
class FaultLog:
    windows: list[Window] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def record(self, kind: str) -> Iterator[None]:
        self.counts[kind] += 1
        began = time.time()
        try:
            yield
        finally:
            self.windows.append(Window(kind, began, time.time()))


class FaultInjector:
    def __init__(self, stores: Stores, roles: Roles, proxy: Proxy, rng: random.Random, pace: float = 1.0) -> None:
        self.fault_log = FaultLog()
        self._stores = stores
        self._roles = roles
        self._proxy = proxy
        self._rng = rng
        self._pace = pace
        """Factor of all durations; below 1 makes them shorter."""
        self._stop = threading.Event()
        self._redis_lock, self._postgres_lock = threading.Lock(), threading.Lock()
        self._failed: list[str] = []
        self.faults: dict[str, Callable[[], None]] = {
            "role killed": self.kill_roles,
            "process killed": self.kill_process,
            "matcher stopped": self.stop_matcher,
            "role stopped": self.stop_role,
            "everything killed": self.kill_everything,
            "redis killed, file kept": lambda: self.kill_redis(empty=False),
            "redis killed, back empty": lambda: self.kill_redis(empty=True),
            "redis flushed": self.flush_redis,
            "redis events off": self.switch_events_off,
            "redis half-open": self.half_open,
            "redis silent": self.pause_redis,
            "redis failed over": self.fail_over,
            "redis clock ahead": self.set_redis_clock_ahead,
            "postgres killed": self.kill_postgres,
            "postgres restarted": self.restart_postgres,
            "postgres backend killed": self.kill_backend,
            "postgres connections cut": self.cut_connections,
            "postgres rows locked": self.lock_rows,
            "postgres rows fought over": self.contend_for_rows,
        }
        if not stores.redis_clock.works:
            del self.faults["redis clock ahead"]

    def run(self, until: float, least: int = 0) -> None:
        """Injects every kind of fault in random order, one to three at a time, and starts over until the time is up
        and at least so many faults were injected, however slow the machine is."""
        planned: list[str] = []
        # First, so that every process restarts with failpoints.
        self._do("everything killed")
        while (time.monotonic() < until or self.fault_log.counts.total() < least) and not self._stop.is_set():
            together = self._rng.choice((1, 1, 2, 3))
            while len(planned) < together:
                planned += self._rng.sample(list(self.faults), len(self.faults))
            kinds, planned = planned[:together], planned[together:]
            threads = [threading.Thread(target=self._do, args=(kind,), daemon=True) for kind in kinds]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self._stop.wait(self._draw(0.3, 3))

    def stop(self) -> None:
        self._stop.set()

    @property
    def failed(self) -> Sequence[str]:
        """Faults that could not be injected; without them the run proves less."""
        return self._failed

    def _do(self, kind: str) -> None:
        try:
            self.faults[kind]()
        except Exception as error:
            self._failed.append(f"{kind}: {type(error).__name__}: {error}")

    def _draw(self, least: float, most: float) -> float:
        return self._rng.uniform(least, most) * self._pace

    # ---- roles ----

    def kill_roles(self) -> None:
        for instance in self._rng.sample(list(self._roles.instances), self._rng.randint(1, 3)):
            with self.fault_log.record(f"{instance.role} killed"):
                instance.send(signal.SIGKILL)

    def kill_process(self) -> None:
        """Kills one process of an api and its children, as the kernel does when memory is short."""
        pids = self._rng.choice(self._roles.of("api")).pids()
        if pids:
            with self.fault_log.record("api process killed"), suppress(ProcessLookupError):
                os.kill(self._rng.choice(pids), signal.SIGKILL)

    def stop_matcher(self) -> None:
        matchers = self._roles.of("matcher")
        chosen = self._rng.sample(matchers, self._rng.choice((1, len(matchers))))
        with self.fault_log.record("matcher stopped"):
            self._stop_for(chosen, self._draw(3, 8))

    def stop_role(self) -> None:
        instance = self._rng.choice(self._roles.of("api", "delivery"))
        with self.fault_log.record(f"{instance.role} stopped"):
            self._stop_for([instance], self._draw(1, 4))

    def _stop_for(self, instances: Sequence[Instance], seconds: float) -> None:
        for instance in instances:
            instance.send(signal.SIGSTOP)
        self._stop.wait(seconds)
        for instance in instances:
            instance.send(signal.SIGCONT)

    def kill_everything(self) -> None:
        with self.fault_log.record("everything killed"):
            self._roles.all_down()
            self._stop.wait(self._draw(1, 6))
            self._roles.all_up()

    # ---- Redis ----

    def kill_redis(self, *, empty: bool) -> None:
        with self._redis_lock, self.fault_log.record(f"redis killed, {'back empty' if empty else 'file kept'}"):
            self._stores.kill_redis()
            self._stop.wait(self._draw(0, 5))
            self._stores.start_redis(empty=empty)

    def flush_redis(self) -> None:
        with self._redis_lock, self.fault_log.record("redis flushed"):
            self._redis("FLUSHALL")

    def switch_events_off(self) -> None:
        with self._redis_lock, self.fault_log.record("redis events off"):
            self._redis("CONFIG", "SET", "notify-keyspace-events", "")

    def half_open(self) -> None:
        with self.fault_log.record("redis half-open"):
            self._proxy.fall_silent()

    def pause_redis(self) -> None:
        seconds = LONG_S * self._pace
        with self._redis_lock, self.fault_log.record("redis silent"):
            process = self._stores.redis.process
            if self._rng.random() < 0.5 or process is None:
                self._redis("CLIENT", "PAUSE", int(seconds * 1000), "ALL")
                self._stop.wait(seconds)
            else:
                process.send_signal(signal.SIGSTOP)
                self._stop.wait(seconds)
                process.send_signal(signal.SIGCONT)

    def fail_over(self) -> None:
        """The address moves to a replica that never reached its primary and at first takes no writes. Open connections
        may use the old primary for a while."""
        with self._redis_lock, self.fault_log.record("redis failed over to an empty replica"):
            self._stores.start_empty_replica()
            self._proxy.lead_to(self._stores.redis_port)
            if self._rng.random() < 0.5:
                self._stores.kill_old_redis()
            self._stop.wait(self._draw(0.2, 2))
            self._stores.promote_replica()
            self._stop.wait(self._draw(0, 3))
            self._stores.kill_old_redis()

    def set_redis_clock_ahead(self) -> None:
        with self._redis_lock, self.fault_log.record("redis clock ahead"):
            self._stores.redis_clock.set_skew(AHEAD_S)
            self._stop.wait(self._draw(2, 8))
            if self._rng.random() < 0.5:
                self._stores.redis_clock.set_skew(0)

    def _redis(self, *command: object) -> None:
        client = self._stores.redis_client()
        try:
            client.execute_command(*command)
        finally:
            client.close()

    # ---- PostgreSQL ----

    def kill_postgres(self) -> None:
        """Kills PostgreSQL while commits are slow: all of its processes, or the postmaster only."""
        with self._postgres_lock:
            with self.fault_log.record("postgres commits slow"):
                self._stores.slow_commits(100_000)
                during = "during commits" if self._wait_for_commit() else "between commits"
            with self.fault_log.record(f"postgres killed {during}"):
                if self._rng.random() < 0.7:
                    self._stores.kill_postgres_at_once()
                else:
                    self._stores.kill_postgres()
                self._stop.wait(self._draw(0, 4))
                self._stores.start_postgres()
                self._stores.slow_commits(0)

    def _wait_for_commit(self) -> bool:
        until = time.monotonic() + 2
        with self._stores.connect() as conn:
            while time.monotonic() < until:
                if conn.execute(COMMITS).fetchall():
                    return True
        return False

    def restart_postgres(self) -> None:
        with self._postgres_lock, self.fault_log.record("postgres restarted"):
            self._stores.restart_postgres(self._rng.choice((signal.SIGINT, signal.SIGQUIT)))

    def kill_backend(self) -> None:
        """PostgreSQL closes all connections and recovers by itself."""
        with self._postgres_lock, self.fault_log.record("postgres backend killed"), self._stores.connect() as conn:
            pids = [row[0] for row in conn.execute(OTHERS)]
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(self._rng.choice(pids), signal.SIGKILL)
            self._stores.connect().close()

    def cut_connections(self) -> None:
        with self._postgres_lock, self.fault_log.record("postgres connections cut"), self._stores.connect() as conn:
            conn.execute(f"SELECT pg_terminate_backend(pid) FROM ({OTHERS}) others")

    def lock_rows(self) -> None:
        statement = self._rng.choice(LOCKS)
        with self._postgres_lock, self._stores.connect() as conn, suppress(psycopg.OperationalError):
            conn.execute("SET lock_timeout = '3s'")
            with self.fault_log.record("postgres rows locked"), conn.transaction():
                conn.execute(statement)
                self._stop.wait(LONG_S * self._pace)

    def contend_for_rows(self) -> None:
        """Four connections lock rows that the roles need, each for a moment, again and again."""
        until = time.monotonic() + LONG_S * self._pace
        with self._postgres_lock, self.fault_log.record("postgres rows fought over"):
            threads = [
                threading.Thread(target=self._lock_again, args=(until, random.Random(self._rng.random())), daemon=True)
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def _lock_again(self, until: float, rng: random.Random) -> None:
        with suppress(psycopg.OperationalError), self._stores.connect() as conn:
            conn.execute("SET lock_timeout = '3s'")
            while time.monotonic() < until and not self._stop.is_set():
                with suppress(psycopg.errors.LockNotAvailable), conn.transaction():
                    conn.execute(rng.choice(LOCKS))
                    self._stop.wait(rng.uniform(0.05, 0.5))

    # ---- the end ----

    def end_faults(self, clocks: Sequence[SkewedClock] = ()) -> None:
        """Sets clocks right and resumes stopped processes. The service must recover from all else by itself."""
        self.stop()
        for clock in (self._stores.redis_clock, *clocks):
            clock.set_skew(0)
        for instance in self._roles.instances:
            instance.send(signal.SIGCONT)


OTHERS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'yaninda-%' AND pid <> pg_backend_pid()"
COMMITS = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = 'COMMIT' AND pid <> pg_backend_pid()"
LOCKS = (
    "SELECT id FROM tasks WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED') ORDER BY id LIMIT 5 FOR UPDATE",
    "SELECT id FROM students ORDER BY id LIMIT 6 FOR UPDATE",
    "SELECT id FROM users WHERE role = 'ELDER' ORDER BY id LIMIT 4 FOR UPDATE",
    "SELECT id FROM notifications WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING') LIMIT 20 FOR UPDATE",
)
