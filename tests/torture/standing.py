"""Nobody is in a hurry for a while: live offers stand still, and can be compared with what Redis says of them."""

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
from tests.torture.crew import Crew
from tests.torture.people import People, Person, Place
from tests.torture.phone import Phone
from tests.torture.proxy import Proxy
from tests.torture.saboteur import Diary
from tests.torture.stores import Stores

LONG = {"OFFER_TTL_S": "90", "SEARCH_LIMIT_S": "180"}
OUTAGE_S = 1.5
LIVE = "SELECT task_id, student_id FROM offers WHERE state = 'PENDING'"


@dataclass
class Standing:
    stores: Stores
    crew: Crew
    proxy: Proxy
    diary: Diary
    people: People
    phone: Callable[[Person], Phone]
    rng: random.Random

    def run(self, times: int) -> tuple[int, list[Violation]]:
        """Redis loses what it knows, or is not told of answers; a moment later it agrees with PostgreSQL about every
        live offer. How many it was asked about is told as well."""
        compared = 0
        violations: list[Violation] = []
        with self._long_offers(), self.stores.connect() as conn:
            tasks = self._press_all()
            for lose in self.rng.sample([self.flush, self.outage, self.failover, self.deaf_matchers], times):
                losing = threading.Thread(target=lose)
                losing.start()
                time.sleep(OUTAGE_S / 5)
                self._some_say_no(conn)
                losing.join()
                time.sleep(checker.AGREED_AFTER_S)
                with closing(self.stores.redis_client()) as client:
                    compared += len(conn.execute(LIVE).fetchall())
                    violations += checker.check_redis_agrees(conn, client)
                    violations += check_lists(conn, client, self.people.calm)
            for elder, task_id in tasks:
                self.phone(elder).word("cancel", task_id)
        return compared, violations

    @contextmanager
    def _long_offers(self) -> Iterator[None]:
        before = {member.name: member.environ for member in self.crew.members}
        self._start_with({name: {**environ, **LONG} for name, environ in before.items()})
        yield
        self._start_with(before)

    def _start_with(self, environs: Any) -> None:
        self.crew.all_down()
        for member in self.crew.members:
            member.environ = environs[member.name]
        self.crew.all_up()

    def _press_all(self) -> list[tuple[Person, str]]:
        found: list[tuple[Person, str]] = []
        for elder in [elder for place in self.people.places for elder in place.elders]:
            task_id = self.phone(elder).press()
            if task_id is not None:
                found.append((elder, task_id))
        return found

    def _some_say_no(self, conn: Conn) -> None:
        students = {one.id: one for place in self.people.places for one in place.students}
        for task_id, student_id in conn.execute(LIVE).fetchall():
            if self.rng.random() < 0.5:
                self.phone(students[student_id]).word("reject", str(task_id))

    # ---- ways to lose ----

    def flush(self) -> None:
        with self.diary.note("redis flushed"), closing(self.stores.redis_client()) as client:
            time.sleep(OUTAGE_S)
            client.flushall()

    def outage(self) -> None:
        with self.diary.note("redis killed, file kept"):
            self.stores.kill_redis()
            time.sleep(OUTAGE_S)
            self.stores.start_redis(empty=False)

    def failover(self) -> None:
        """The old one goes on for a while, and takes what those say who are still connected to it."""
        with self.diary.note("redis failed over to an empty replica"):
            self.stores.start_empty_replica()
            self.proxy.lead_to(self.stores.redis_port)
            self.stores.promote_replica()
            time.sleep(OUTAGE_S)
            self.stores.kill_redis_before()

    def deaf_matchers(self) -> None:
        """The word that Redis has been emptied comes to matchers that stood still meanwhile."""
        matchers = self.crew.of("matcher")
        with self.diary.note("matcher stopped"), closing(self.stores.redis_client()) as client:
            for member in matchers:
                member.send(signal.SIGSTOP)
            time.sleep(OUTAGE_S)
            client.flushall()
            for member in matchers:
                member.send(signal.SIGCONT)


def check_lists(conn: Conn, client: Any, calm: Sequence[Place]) -> list[Violation]:
    """In calm places the list is the beginning of those who have not been asked yet, nearest first."""
    details: list[str] = []
    for place in calm:
        rows = conn.execute(
            "SELECT t.id, array(SELECT o.student_id FROM offers o WHERE o.task_id = t.id) FROM tasks t"
            " WHERE t.status = 'PENDING' AND t.elder_id = ANY(%s)",
            [[elder.id for elder in place.elders]],
        ).fetchall()
        for task_id, seen in rows:
            left = [student.id for student in place.students if student.id not in seen]
            listed = [int(item) for item in client.lrange(keys.candidates(task_id), 0, -1)]
            if listed != left[: len(listed)]:
                details.append(f"{task_id}: Redis lists {listed}, left are {left}")
    return some("a candidate list that is not that of who is left", details)
