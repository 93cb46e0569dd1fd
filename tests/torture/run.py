"""One run: create users, start the roles, inject faults under load, end the faults, wait until all tasks end, check."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from machine import processes
from machine.steps import interrupts
from sqlalchemy import create_engine

from app.cli.migrate import upgrade
from app.db.database import Database, psycopg_url
from tests.torture import checker, downtime, event_checks, history_triggers, order, roster_checks
from tests.torture.answers import AnswerLog
from tests.torture.drivers import Drivers
from tests.torture.event_readers import EventReaders
from tests.torture.fault_injector import AHEAD_S, FaultInjector
from tests.torture.fault_windows import AFTERMATH_S, Window
from tests.torture.feed_poller import FeedPoller
from tests.torture.nightly_lists import NightlyLists
from tests.torture.people import SECRET, People, PeopleCreator
from tests.torture.proxy import Proxy
from tests.torture.published_lists import KINDS, Publisher, listed
from tests.torture.redis_loss import RedisLoss
from tests.torture.report import Report
from tests.torture.roles import Instance, Roles
from tests.torture.stores import MARK, SkewedClock, Stores

RADIUS_M = 1000.0
BEHIND_S = -300
LEASE_S = 30.0
LOG_EVERY_S = 10.0
SETTLED_AFTER_S = 30
"""When nothing changes any more, readers of events have caught up."""
STRANGERS = 15
"""Of each kind, who enter the service by a list."""


@dataclass(frozen=True)
class Options:
    minutes: float
    seed: int
    apis: int = 2
    matchers: int = 3
    deliveries: int = 2
    overdue: int = 300
    faults: int = 0
    """At least so many are injected, even if that takes longer than `minutes`."""
    quick: bool = False
    """Fewer people and shorter times, for a run of well under a minute."""

    @property
    def search_limit_s(self) -> int:
        return 8 if self.quick else 20

    @property
    def batch(self) -> int:
        """`MATCHER_BATCH`, so small that the order in which overdue offers are handled can be seen."""
        return max(5, min(self.overdue // 15, 50))


class Run:
    def __init__(self, stores: Stores, options: Options, log: Callable[[str], None] = print) -> None:
        self.options = options
        self.rng = random.Random(options.seed)
        self.stores = stores
        self.log = log
        self.answer_log = AnswerLog()
        self.proxy = Proxy(stores.redis_port)
        self.host_clock = SkewedClock(stores.folder, "host")
        self.ports = [processes.free_port() for _ in range(options.apis)]
        self.roster_folder = stores.folder / "roster"
        self.roster_folder.mkdir()
        self.roles = Roles(self._instances(), random.Random(options.seed + 1))
        self.fault_injector = FaultInjector(
            stores, self.roles, self.proxy, random.Random(options.seed + 2), pace=0.4 if options.quick else 1.0
        )
        self.violations: list[checker.Violation] = []
        self.notes: list[str] = [] if self.host_clock.works else ["no C compiler, so all clocks were right"]

    # ---- setting up ----

    def _instances(self) -> list[Instance]:
        # One has no ticker and one no listener, because the other threads must be enough.
        without: list[dict[str, str]] = [{}, {"MATCHER_TICKER": "false"}, {"MATCHER_LISTENER": "false"}]
        matchers = [
            self._instance("matcher", index, **without[index % len(without)]) for index in range(self.options.matchers)
        ]
        apis = [self._instance("api", index, PORT=str(port)) for index, port in enumerate(self.ports)]
        return [*apis, *matchers, *[self._instance("delivery", index) for index in range(self.options.deliveries)]]

    def _instance(self, role: str, index: int, **extra: str) -> Instance:
        environ = {**self._environ(), **extra}
        # The last process of each role gets a clock that is behind.
        copies = {"api": self.options.apis, "matcher": self.options.matchers, "delivery": self.options.deliveries}
        if index == copies[role] - 1:
            environ |= self.host_clock.environment
        name = f"{role}-{index + 1}"
        return Instance(role, name, environ, self.stores.folder / f"{name}.log")

    def _environ(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            # Files that a killed process leaves are removed with the folder of the run.
            "TMPDIR": str(self.stores.folder),
            "DATABASE_URL": self.stores.database_url,
            # Through the proxy, which can fall silent or lead to another server.
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
            # People press, cancel, withdraw and move as fast as they can, and each alarm is checked.
            "TASKS_PER_MINUTE": "1000",
            "TASKS_PER_HOUR": "60000",
            "CANCELS_PER_STUDENT": "1000000",
            "WITHDRAWALS_PER_DAY": "1000000",
            "ALARM_INTERVAL_S": "0",
            "FASTEST_KMH": "1000000",
            "LOCATIONS_PER_MINUTE": "1000",
            "ROSTER_DIR": str(self.roster_folder),
            "ROSTER_LEAST_ROWS": "0",
            "ROSTER_REMOVED_FLOOR": "1000",
            MARK: str(self.stores.folder),
        }

    def _create_people(self) -> tuple[People, PeopleCreator]:
        engine = create_engine(psycopg_url(self.stores.database_url))
        upgrade(engine)
        engine.dispose()
        with self.stores.connect() as conn:
            conn.execute(history_triggers.STUDENTS)
            conn.execute(history_triggers.PUSHES)
        creator = PeopleCreator(Database(self.stores.database_url, pool_size=2))
        if self.options.quick:
            return creator.create(busy=1, elders=4, students=5, calm=1, calm_students=3), creator
        return creator.create(busy=3, elders=4, students=5, calm=2, calm_students=4), creator

    # ---- the run ----

    def run(self) -> Report:
        began = time.monotonic()
        people, creator = self._create_people()
        self.publisher = self._publisher(people)
        nightly = self.nightly = NightlyLists(
            self.publisher,
            self._environ(),
            self.stores.folder / "roster-sync.log",
            random.Random(self.options.seed + 5),
            self.options.quick,
        )
        poller = self.poller = FeedPoller(
            self.stores.folder,
            self.ports,
            {kind: creator.consumer_token(kind, people.admin) for kind in KINDS},
            self.publisher,
            random.Random(self.options.seed + 6),
        )
        readers = self.readers = EventReaders(people, self.ports, random.Random(self.options.seed + 7))
        self.host_clock.set_skew(BEHIND_S)
        restarting = threading.Thread(target=self.roles.run, daemon=True)
        self.roles.armed = False
        self.roles.all_up()
        self._until(lambda: all(processes.is_ready(port) for port in self.ports), 60)
        self.roles.armed = True
        restarting.start()
        down = None
        try:
            drivers = Drivers(people, self.ports, self.answer_log, self.options.seed)
            drivers.start()
            readers.start()
            beside = [self._start_beside(one.run) for one in (nightly, poller)]
            self._inject_faults()
            self.log("faults end")
            nightly.stop()
            self.fault_injector.end_faults((self.host_clock,))
            # On a busy machine the new start takes longer than an offer may be late.
            with self.fault_injector.fault_log.record("everything killed"):
                self.roles.disarm()
            prompt = self._skew_clocks()
            drivers.stop()
            poller.stop()
            for thread in beside:
                thread.join()
            self._take_everybody()
            compared = self._end_tasks(drivers, people)
            if self.options.overdue and not self.violations:
                down = self._take_down(creator)
            self._check_events()
            return self._report(time.monotonic() - began, down, prompt, compared)
        finally:
            nightly.stop()
            poller.stop()
            readers.stop()
            self.roles.stop()
            self.proxy.close()

    def _start_beside(self, work: Callable[[], None]) -> threading.Thread:
        def work_or_tell() -> None:
            try:
                work()
            except Exception as error:
                self.violations.append(
                    checker.Violation("a part of the torture that broke off", f"{type(error).__name__}: {error}")
                )

        thread = threading.Thread(target=work_or_tell, daemon=True)
        thread.start()
        return thread

    def _publisher(self, people: People) -> Publisher:
        """Some of those who press and are asked are on the lists."""
        busy = {
            "students": [one for place in people.busy for one in place.students[:3]],
            "elders": [one for place in people.busy for one in place.elders[1:3]],
        }
        everybody = listed(busy, STRANGERS)
        return Publisher(self.stores.folder / "lists", everybody, random.Random(self.options.seed + 4))

    def _take_everybody(self) -> None:
        self.log("everybody comes back by a list")
        self.nightly.take_everybody()
        self.poller.compare()
        with self.stores.connect() as conn:
            self.violations += roster_checks.check_followed(conn, self.publisher)
            self.violations += roster_checks.check_archives(conn, self.roster_folder, self.publisher)
        self.violations += [*self.nightly.violations, *self.nightly.tracebacks(), *self.poller.violations]

    def _inject_faults(self) -> None:
        seconds = self.options.minutes * 60
        until = time.monotonic() + seconds
        injecting = threading.Thread(target=self.fault_injector.run, args=(until, self.options.faults), daemon=True)
        injecting.start()
        next_line = time.monotonic() + LOG_EVERY_S
        while injecting.is_alive() or time.monotonic() < until:
            if interrupts.count:
                self.fault_injector.stop()
                interrupts.check()
            if self.options.quick and until - time.monotonic() < seconds * 0.6:
                # After a killed delivery, its notifications wait for the end of its lease, too long for a short run.
                self.roles.arm_delivery = False
            if time.monotonic() > next_line:
                next_line += LOG_EVERY_S
                self._log_progress(until)
            self._check_always()
            time.sleep(0.5)

    def _check_always(self) -> None:
        """Checks the promises that hold at any moment, unless PostgreSQL is away."""
        try:
            with self.stores.connect(patience_s=0) as conn:
                conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                with conn.transaction():
                    found = [*checker.check_always(conn), *roster_checks.check_lists(conn, self.publisher)]
                found += roster_checks.check_archives(conn, self.roster_folder, self.publisher)
        except psycopg.Error:
            return
        self.violations += [violation for violation in found if violation not in self.violations]

    def _log_progress(self, until: float) -> None:
        faults = sum(self.fault_injector.fault_log.counts.values())
        answers = sum(count for status, count in self.answer_log.statuses.items() if status)
        self.log(
            f"{max(until - time.monotonic(), 0):5.0f} s left, {faults} faults, {self.roles.deaths} restarts,"
            f" {len(self.answer_log.created)} tasks, {answers} answers, {len(self.violations)} violations"
        )

    def _skew_clocks(self) -> int:
        """A phase without other faults, so that lateness in it comes from clocks. Returns how many offers expired."""
        self.log("only clocks are wrong")
        seconds = 5 if self.options.quick else 12
        with self.fault_injector.fault_log.record("clocks wrong"):
            self.stores.redis_clock.set_skew(AHEAD_S)
            self.host_clock.set_skew(BEHIND_S)
            # Until the effects of earlier faults are over.
            time.sleep(AFTERMATH_S)
            since = time.time()
            time.sleep(seconds)
            until = time.time()
        with self.stores.connect() as conn:
            self.violations += checker.check_prompt(conn, since, until)
            ran_out = checker.ran_out(conn, since, until)
        for clock in (self.stores.redis_clock, self.host_clock):
            clock.set_skew(0)
        return ran_out

    def _end_tasks(self, drivers: Drivers, people: People) -> int:
        with self.stores.connect() as conn, closing(self.stores.redis_client()) as client:
            # The drivers have stopped; from here on only the service itself changes tasks.
            time.sleep(checker.AGREED_AFTER_S)
            self.violations += checker.check_redis_agrees(conn, client)
            drivers.finish(lambda: _assigned_tasks(conn))
            if not self._until(lambda: _open_tasks(conn) == 0, self.options.search_limit_s + 15):
                drivers.finish(lambda: _assigned_tasks(conn))
            self._until(lambda: _open_tasks(conn) == 0, 10)
        self.log("Redis loses its data while offers are live")
        rng = random.Random(self.options.seed + 3)
        fault_log = self.fault_injector.fault_log
        redis_loss = RedisLoss(self.stores, self.roles, self.proxy, fault_log, people, drivers.phone, rng)
        compared, found = redis_loss.run(1 if self.options.quick else 2)
        self.violations += found
        with self.stores.connect() as conn, closing(self.stores.redis_client()) as client:
            self._until(lambda: _unfinished_messages(conn) == 0, LEASE_S + 10)
            self._until(lambda: not checker.check_redis_is_empty(client), 10)
            silent = [*self.roles.death_windows, *self.roles.pauses()]
            evidence = checker.Evidence(self.answer_log, self.fault_injector.fault_log.windows, silent)
            self.violations += checker.check_at_rest(conn, client, evidence)
            self.violations += order.check_order(conn, people.calm, RADIUS_M)
        return compared

    def _take_down(self, creator: PeopleCreator) -> downtime.Downtime:
        self.log(f"down for two hours while {self.options.overdue} offers fall due")
        places = creator.separate_places(self.options.overdue, 2)
        with self.stores.connect() as conn:
            down = downtime.take_down(conn, self.roles, places, self.ports, self.answer_log, self.options.batch)
            self._until(lambda: _unfinished_messages(conn) == 0, LEASE_S + 30)
            self.violations += down.violations
            with closing(self.stores.redis_client()) as client:
                self._until(lambda: not checker.check_redis_is_empty(client), 10)
                self.violations += checker.check_ended(conn, client)
        return down

    def _check_events(self) -> None:
        with self.stores.connect() as conn:
            self._until(lambda: event_checks.have_seen_all(conn, self.readers.readers), SETTLED_AFTER_S)
            self.readers.stop()
            self.violations += event_checks.check_readers(conn, self.readers.readers, self._disturbed())

    def _disturbed(self) -> list[Window]:
        return [*self.fault_injector.fault_log.windows, *self.roles.death_windows, *self.roles.pauses()]

    def _until(self, condition: Callable[[], bool], patience_s: float) -> bool:
        until = time.monotonic() + patience_s
        while not condition():
            interrupts.check()
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def _report(self, seconds: float, down: downtime.Downtime | None, prompt: int, compared: int) -> Report:
        self.violations += [checker.Violation("an error in the log of a role", line) for line in self.roles.errors()]
        with self.stores.connect() as conn:
            return Report(
                seed=self.options.seed,
                minutes=seconds / 60,
                copies=f"{self.options.apis} api, {self.options.matchers} matcher, {self.options.deliveries} delivery",
                faults={**self.fault_injector.fault_log.counts, **self.roles.failpoints_hit()},
                deaths=self.roles.deaths,
                tasks=_counts(conn, "SELECT status, count(*) FROM tasks GROUP BY status"),
                offers=_counts(conn, "SELECT state, count(*) FROM offers GROUP BY state"),
                answers={str(status or "none"): count for status, count in self.answer_log.statuses.items()},
                pushes=_counts(conn, "SELECT 'all', count(*) FROM recorded_pushes")["all"],
                worst_lateness_s=checker.worst_lateness_s(conn, self.fault_injector.fault_log.windows),
                prompt=prompt,
                compared=compared,
                downtime=down,
                syncs=self.nightly.counts,
                followed=_counts(conn, FOLLOWED),
                polls=self.poller.counts,
                events=event_checks.figures(self.readers.readers, self._disturbed()),
                violations=self.violations,
                notes=[*self.notes, *(f"not injected: {text}" for text in self.fault_injector.failed)],
            )


FOLLOWED = """
SELECT count.key, sum(count.value::float8)::int
FROM roster_runs r, jsonb_each(r.report -> 'people') kind, jsonb_each_text(kind.value) count
WHERE count.key <> 'longest_ms' GROUP BY count.key"""


def _assigned_tasks(conn: checker.Conn) -> Sequence[tuple[str, str, int]]:
    rows = conn.execute("SELECT id, status, student_id FROM tasks WHERE status IN ('ASSIGNED', 'STARTED')")
    return [(str(row[0]), row[1], row[2]) for row in rows.fetchall()]


def _open_tasks(conn: checker.Conn) -> int:
    return _number(conn, "SELECT count(*) FROM tasks WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED')")


def _unfinished_messages(conn: checker.Conn) -> int:
    """Notifications, and the actions that end a moment after their last notification."""
    return _number(
        conn,
        "SELECT (SELECT count(*) FROM notifications WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING'))"
        " + (SELECT count(*) FROM actions WHERE status = 'RUNNING')",
    )


def _number(conn: checker.Conn, question: LiteralString) -> int:
    row = conn.execute(question).fetchone()
    assert row is not None
    return row[0]


def _counts(conn: checker.Conn, question: LiteralString) -> dict[str, int]:
    return {row[0]: row[1] for row in conn.execute(question).fetchall()}
