"""One run: settle people, start the roles, drive and break, mend, wait for the rules to end it all, judge."""

import random
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg
from machine import processes
from machine.steps import interrupts
from sqlalchemy import create_engine

from app.cli.migrate import upgrade
from app.db.database import Database, psycopg_url
from tests.torture import checker, diaries, downtime, order
from tests.torture.crew import Crew, Member, is_ready
from tests.torture.drivers import Drivers
from tests.torture.ledger import Ledger
from tests.torture.people import SECRET, People, Settler
from tests.torture.proxy import Proxy
from tests.torture.report import Report
from tests.torture.saboteur import AHEAD_S, Saboteur
from tests.torture.standing import Standing
from tests.torture.stores import MARK, Skew, Stores
from tests.torture.windows import AFTERMATH_S

RADIUS_M = 1000.0
BEHIND_S = -300
LEASE_S = 30.0
TELL_EVERY_S = 10.0


@dataclass(frozen=True)
class Options:
    minutes: float
    seed: int
    apis: int = 2
    matchers: int = 3
    deliveries: int = 2
    overdue: int = 300
    quick: bool = False
    """Fewer people and shorter times, for a run of well under a minute."""

    @property
    def search_limit_s(self) -> int:
        return 8 if self.quick else 20

    @property
    def batch(self) -> int:
        """So small that the order in which overdue offers are dealt with can be seen."""
        return max(5, min(self.overdue // 15, 50))


class Run:
    def __init__(self, stores: Stores, options: Options, tell: Any = print) -> None:
        self.options = options
        self.rng = random.Random(options.seed)
        self.stores = stores
        self.tell = tell
        self.ledger = Ledger()
        self.proxy = Proxy(stores.redis_port)
        self.host_clock = Skew(stores.folder, "host")
        self.ports = [processes.free_port() for _ in range(options.apis)]
        self.crew = Crew(self._members(), random.Random(options.seed + 1))
        self.saboteur = Saboteur(
            stores, self.crew, self.proxy, random.Random(options.seed + 2), pace=0.4 if options.quick else 1.0
        )
        self.violations: list[checker.Violation] = []
        self.notes: list[str] = [] if self.host_clock.works else ["no C compiler, so no clock was put wrong"]

    # ---- setting up ----

    def _members(self) -> list[Member]:
        # One of them without a ticker, one without a listener: the others make up for it.
        without: list[dict[str, str]] = [{}, {"MATCHER_TICKER": "false"}, {"MATCHER_LISTENER": "false"}]
        matchers = [
            self._member("matcher", index, **without[index % len(without)]) for index in range(self.options.matchers)
        ]
        apis = [self._member("api", index, PORT=str(port)) for index, port in enumerate(self.ports)]
        return [*apis, *matchers, *[self._member("delivery", index) for index in range(self.options.deliveries)]]

    def _member(self, role: str, index: int, **extra: str) -> Member:
        environ = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            # Whoever is killed leaves its files where they go with the rest.
            "TMPDIR": str(self.stores.folder),
            "DATABASE_URL": self.stores.database_url,
            # A wire that can fall silent, to an address that can move.
            "REDIS_URL": self.stores.redis_url(self.proxy.port),
            "AUTH_SECRET": SECRET,
            "API_WORKERS": "1",
            "NOTIFICATION_QUEUE_CONSUMER_THREADS": "4",
            "OFFER_TTL_S": "2",
            "SEARCH_LIMIT_S": str(self.options.search_limit_s),
            "START_LIMIT_S": "4",
            "COMPLETE_LIMIT_S": "8",
            "RECONCILE_INTERVAL_S": "1",
            "CANDIDATE_CAP": str(random.Random(self.options.seed).choice((2, 3, 50))),
            "MATCHER_BATCH": str(self.options.batch),
            "TASKS_PER_MINUTE": "1000",
            "LOCATIONS_PER_MINUTE": "1000",
            MARK: str(self.stores.folder),
            **extra,
        }
        # The last of each role lives on a host whose clock is behind.
        copies = {"api": self.options.apis, "matcher": self.options.matchers, "delivery": self.options.deliveries}
        if index == copies[role] - 1:
            environ |= self.host_clock.environment
        name = f"{role}-{index + 1}"
        return Member(role, name, environ, self.stores.folder / f"{name}.log")

    def _settle(self) -> tuple[People, Settler]:
        engine = create_engine(psycopg_url(self.stores.database_url))
        upgrade(engine)
        engine.dispose()
        with self.stores.connect() as conn:
            conn.execute(diaries.STUDENTS)
            conn.execute(diaries.PUSHES)
        settler = Settler(Database(self.stores.database_url, pool_size=2))
        if self.options.quick:
            return settler.settle(lively=1, elders=4, students=5, calm=1, calm_students=3), settler
        return settler.settle(lively=3, elders=4, students=5, calm=2, calm_students=4), settler

    # ---- the run ----

    def run(self) -> Report:
        began = time.monotonic()
        people, settler = self._settle()
        self.host_clock.put(BEHIND_S)
        tending = threading.Thread(target=self.crew.run, daemon=True)
        self.crew.armed = False
        self.crew.all_up()
        self._until(lambda: all(is_ready(port) for port in self.ports), 60)
        self.crew.armed = True
        tending.start()
        down = None
        try:
            drivers = Drivers(people, self.ports, self.ledger, self.options.seed)
            drivers.start()
            self._break_things()
            self.tell("mending")
            self.saboteur.heal((self.host_clock,))
            self.crew.disarm()
            prompt = self._put_clocks_wrong()
            drivers.stop()
            compared = self._come_to_rest(drivers, people)
            if self.options.overdue and not self.violations:
                down = self._be_down(settler)
            return self._report(time.monotonic() - began, down, prompt, compared)
        finally:
            self.crew.stop()
            self.proxy.close()

    def _break_things(self) -> None:
        seconds = self.options.minutes * 60
        until = time.monotonic() + seconds
        breaking = threading.Thread(target=self.saboteur.run, args=(until,), daemon=True)
        breaking.start()
        next_line = time.monotonic() + TELL_EVERY_S
        while breaking.is_alive() or time.monotonic() < until:
            if interrupts.count:
                self.saboteur.stop()
                interrupts.check()
            if self.options.quick and until - time.monotonic() < seconds * 0.6:
                # A killed delivery is waited for as long as its lease, which a short run has no time for.
                self.crew.delivery_armed = False
            if time.monotonic() > next_line:
                next_line += TELL_EVERY_S
                self._tell_progress(until)
            self._look()
            time.sleep(0.5)

    def _look(self) -> None:
        """The promises that hold at any moment, in the middle of it all; PostgreSQL may be away."""
        try:
            with self.stores.connect(patience_s=0) as conn:
                conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                with conn.transaction():
                    found = checker.check_always(conn)
        except psycopg.Error:
            return
        self.violations += [violation for violation in found if violation not in self.violations]

    def _tell_progress(self, until: float) -> None:
        faults = sum(self.saboteur.diary.counts.values())
        answers = sum(count for status, count in self.ledger.statuses.items() if status)
        self.tell(
            f"{max(until - time.monotonic(), 0):5.0f} s left, {faults} faults, {self.crew.deaths} restarts,"
            f" {len(self.ledger.created)} requests, {answers} answers, {len(self.violations)} violations"
        )

    def _put_clocks_wrong(self) -> int:
        """Nothing else is broken meanwhile, so that what is late is late because of them. Tells how many offers ran
        out."""
        self.tell("only clocks are wrong")
        seconds = 5 if self.options.quick else 12
        with self.saboteur.diary.note("clocks wrong"):
            self.stores.redis_clock.put(AHEAD_S)
            self.host_clock.put(BEHIND_S)
            # Until everybody has caught up with what was broken before.
            time.sleep(AFTERMATH_S)
            since = time.time()
            time.sleep(seconds)
            until = time.time()
        with self.stores.connect() as conn:
            self.violations += checker.check_prompt(conn, since, until)
            ran_out = checker.ran_out(conn, since, until)
        for clock in (self.stores.redis_clock, self.host_clock):
            clock.put(0)
        return ran_out

    def _come_to_rest(self, drivers: Drivers, people: People) -> int:
        with self.stores.connect() as conn, closing(self.stores.redis_client()) as client:
            # Nothing is driven now, so that what goes on does so by the rules alone.
            time.sleep(checker.AGREED_AFTER_S)
            self.violations += checker.check_redis_agrees(conn, client)
            drivers.finish(lambda: _held(conn))
            if not self._until(lambda: _open(conn) == 0, self.options.search_limit_s + 15):
                drivers.finish(lambda: _held(conn))
            self._until(lambda: _open(conn) == 0, 10)
        self.tell("offers stand while Redis forgets")
        rng = random.Random(self.options.seed + 3)
        standing = Standing(self.stores, self.crew, self.proxy, self.saboteur.diary, people, drivers.phone, rng)
        compared, found = standing.run(1 if self.options.quick else 2)
        self.violations += found
        with self.stores.connect() as conn, closing(self.stores.redis_client()) as client:
            self._until(lambda: _on_their_way(conn) == 0, LEASE_S + 10)
            self._until(lambda: not checker.check_redis_is_empty(client), 10)
            silent = [*self.crew.deaths_noted, *self.crew.pauses()]
            evidence = checker.Evidence(self.ledger, self.saboteur.diary.windows, silent)
            self.violations += checker.check_at_rest(conn, client, evidence)
            self.violations += order.check_order(conn, people.calm, RADIUS_M)
        return compared

    def _be_down(self, settler: Settler) -> downtime.Downtime:
        self.tell(f"down for two hours with {self.options.overdue} offers due")
        couples = settler.couples(self.options.overdue, 2)
        with self.stores.connect() as conn:
            down = downtime.be_down(conn, self.crew, couples, self.ports, self.ledger, self.options.batch)
            self._until(lambda: _on_their_way(conn) == 0, LEASE_S + 30)
            self.violations += down.violations
            with closing(self.stores.redis_client()) as client:
                self._until(lambda: not checker.check_redis_is_empty(client), 10)
                self.violations += checker.check_ended(conn, client)
        return down

    def _until(self, what: Any, patience_s: float) -> bool:
        until = time.monotonic() + patience_s
        while not what():
            interrupts.check()
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def _report(self, seconds: float, down: downtime.Downtime | None, prompt: int, compared: int) -> Report:
        self.violations += [checker.Violation("an error that nobody expected", line) for line in self.crew.errors()]
        with self.stores.connect() as conn:
            return Report(
                seed=self.options.seed,
                minutes=seconds / 60,
                copies=f"{self.options.apis} api, {self.options.matchers} matcher, {self.options.deliveries} delivery",
                faults={**self.saboteur.diary.counts, **self.crew.failpoints_hit()},
                deaths=self.crew.deaths,
                tasks=_counted(conn, "SELECT status, count(*) FROM tasks GROUP BY status"),
                offers=_counted(conn, "SELECT state, count(*) FROM offers GROUP BY state"),
                answers={str(status or "none"): count for status, count in self.ledger.statuses.items()},
                pushes=_counted(conn, "SELECT 'all', count(*) FROM recorded_pushes")["all"],
                worst_lateness_s=checker.worst_lateness_s(conn, self.saboteur.diary.windows),
                prompt=prompt,
                compared=compared,
                downtime=down,
                violations=self.violations,
                notes=[*self.notes, *(f"not injected: {text}" for text in self.saboteur.failed)],
            )


def _held(conn: checker.Conn) -> Sequence[tuple[str, str, int]]:
    rows = conn.execute("SELECT id, status, student_id FROM tasks WHERE status IN ('ASSIGNED', 'STARTED')")
    return [(str(row[0]), row[1], row[2]) for row in rows.fetchall()]


def _open(conn: checker.Conn) -> int:
    return _one(conn, "SELECT count(*) FROM tasks WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED')")


def _on_their_way(conn: checker.Conn) -> int:
    return _one(conn, "SELECT count(*) FROM notifications WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING')")


def _one(conn: checker.Conn, question: str) -> int:
    row = conn.execute(question).fetchone()
    assert row is not None
    return row[0]


def _counted(conn: checker.Conn, question: str) -> dict[str, int]:
    return {row[0]: row[1] for row in conn.execute(question).fetchall()}
