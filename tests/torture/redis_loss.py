"""A phase in which offers stay live for long, so that Redis can be compared with PostgreSQL after it lost data."""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from app.redis_store import keys
from tests.torture import checker
from tests.torture.checker import Conn, Violation, some
from tests.torture.fault_injector import FaultLog
from tests.torture.people import People, Person, Place
from tests.torture.phone import Phone
from tests.torture.proxy import Proxy
from tests.torture.roles import Roles
from tests.torture.stores import Stores

LONG_OFFERS = {"OFFER_TTL_S": "90", "SEARCH_LIMIT_S": "180"}
OUTAGE_S = 1.5
LIVE = "SELECT task_id, student_id FROM offers WHERE state = 'PENDING'"


@dataclass
class RedisLoss:
    stores: Stores
    roles: Roles
    proxy: Proxy
    fault_log: FaultLog
    people: People
    phone: Callable[[Person], Phone]
    rng: random.Random

    def run(self, times: int) -> tuple[int, list[Violation]]:
        """Makes Redis lose data, or miss rejections, and checks that it soon agrees with PostgreSQL about every live
        offer. Also returns how many offers were compared."""
        compared = 0
        violations: list[Violation] = []
        with self._long_offers(), self.stores.connect() as conn:
            tasks = self._press_all()
            for lose in self.rng.sample([self.flush, self.outage, self.failover, self.flush_unnoticed], times):
                losing = threading.Thread(target=lose)
                losing.start()
                time.sleep(OUTAGE_S / 5)
                self._reject_some(conn)
                losing.join()
                time.sleep(checker.AGREED_AFTER_S)
                with closing(self.stores.redis_client()) as client:
                    compared += len(conn.execute(LIVE).fetchall())
                    violations += checker.check_redis_agrees(conn, client)
                    violations += check_lists(conn, client, self.people.calm)
            for elder, task_id in tasks:
                self.phone(elder).do("cancel", task_id)
        return compared, violations

    @contextmanager
    def _long_offers(self) -> Iterator[None]:
        before = {instance.name: instance.environ for instance in self.roles.instances}
        self._start_with({name: {**environ, **LONG_OFFERS} for name, environ in before.items()})
        yield
        self._start_with(before)

    def _start_with(self, environs: Any) -> None:
        self.roles.all_down()
        for instance in self.roles.instances:
            instance.environ = environs[instance.name]
        self.roles.all_up()

    def _press_all(self) -> list[tuple[Person, str]]:
        found: list[tuple[Person, str]] = []
        for elder in [elder for place in self.people.places for elder in place.elders]:
            task_id = self.phone(elder).press()
            if task_id is not None:
                found.append((elder, task_id))
        return found

    def _reject_some(self, conn: Conn) -> None:
        students = {one.id: one for place in self.people.places for one in place.students}
        for task_id, student_id in conn.execute(LIVE).fetchall():
            if self.rng.random() < 0.5:
                self.phone(students[student_id]).do("reject", str(task_id))

    # ---- ways to lose data ----

    def flush(self) -> None:
        with self.fault_log.record("redis flushed"), closing(self.stores.redis_client()) as client:
            time.sleep(OUTAGE_S)
            client.flushall()

    def outage(self) -> None:
        with self.fault_log.record("redis killed, file kept"):
            self.stores.kill_redis()
            time.sleep(OUTAGE_S)
            self.stores.start_redis(empty=False)

    def failover(self) -> None:
        """The old server runs on for a while and accepts commands from open connections."""
        with self.fault_log.record("redis failed over to an empty replica"):
            self.stores.start_empty_replica()
            self.proxy.lead_to(self.stores.redis_port)
            self.stores.promote_replica()
            time.sleep(OUTAGE_S)
            self.stores.kill_old_redis()

    def flush_unnoticed(self) -> None:
        """Matchers learn only after they are resumed that Redis has been emptied."""
        matchers = self.roles.of("matcher")
        with self.fault_log.record("matcher stopped"), closing(self.stores.redis_client()) as client:
            for instance in matchers:
                instance.send(signal.SIGSTOP)
            time.sleep(OUTAGE_S)
            client.flushall()
            for instance in matchers:
                instance.send(signal.SIGCONT)


def check_lists(conn: Conn, client: Any, calm: Sequence[Place]) -> list[Violation]:
    """In calm places the candidate list must be a prefix of the students not asked yet, nearest first."""
    details: list[str] = []
    for place in calm:
        rows = conn.execute(
            "SELECT t.id, array(SELECT o.student_id FROM offers o WHERE o.task_id = t.id) FROM tasks t"
            " WHERE t.status = 'PENDING' AND t.elder_id = ANY(%s)",
            [[elder.id for elder in place.elders]],
        ).fetchall()
        for task_id, asked in rows:
            not_asked = [student.id for student in place.students if student.id not in asked]
            listed = [int(item) for item in client.lrange(keys.candidates(task_id), 0, -1)]
            if listed != not_asked[: len(listed)]:
                details.append(f"{task_id}: Redis lists {listed}, not asked yet are {not_asked}")
    return some("a candidate list that differs from the students not asked yet", details)
