"""Sets the deadlines of live offers, lets somebody meet them, and looks when they were met.

They are met when another connection learns of the commit: it listens to the wake-up call that every offer's
transaction sends to delivery, which PostgreSQL hands out after the commit is on disk.
"""

import bisect
import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from app.db.wake import WAKE_CHANNEL
from app.redis_store import keys
from app.redis_store.contract import to_ms
from benchmarks import celery_rival, neighbourhoods, roles
from benchmarks.bench import MATCHER_OPTIONS, Bench, fetch, run, say
from benchmarks.capture import captured
from benchmarks.neighbourhoods import FIRST_BYSTANDER, Neighbourhoods
from benchmarks.replay import Due, Template

LEAD_S = 4.0
"""From arming to the first deadline that counts."""
WARM_UP = 200
GRACE_S = 3.0
BATCH = 200
RIVAL_PATIENCE_S = 25.0


@dataclass(frozen=True)
class Armed:
    """Deadlines by task: those that count, and when the last of them is."""

    deadlines: dict[UUID, datetime]
    warming: dict[UUID, datetime]
    last_offer: int
    until: datetime


class Stage:
    def __init__(self, bench: Bench, database: str, world: Neighbourhoods, client: Any) -> None:
        self._bench = bench
        self._database = database
        self._world = world
        self._client = client
        self._random = random.Random(7)
        self.processor_s = 0.0
        """That the matcher used for all its offers: unlike its lateness, hardly touched by its neighbours."""
        self.settled = 0

    def ours(self, tasks: int, per_second: int) -> list[float]:
        with self._listening() as commits, roles.role(self._bench, "matcher", self._database) as pid:
            armed = self._arm(tasks, per_second)
            _sleep_until(min(armed.deadlines.values()))
            before_s = roles.processor_s(pid)
            _sleep_until(armed.until + timedelta(seconds=GRACE_S))
            self.processor_s += roles.processor_s(pid) - before_s
            self.settled += tasks
        return self._lateness(armed, commits)

    def floor(self, tasks: int, per_second: int, template: Template) -> list[float]:
        """Bare psycopg that knows all deadlines."""
        armed = self._arm(tasks, per_second)
        due = self._due(armed)
        with self._listening() as commits, self._settling(template) as settle:
            while due:
                _sleep_until(due[0][0])
                now = datetime.now(UTC)
                ready = [one for moment, one in due[:BATCH] if moment <= now]
                settle(ready)
                del due[: len(ready)]
            time.sleep(1)
        return self._lateness(armed, commits)

    def after_a_crash(self, tasks: int, *, emptied: bool) -> list[float]:
        """The only matcher is killed amid its work; what fell due meanwhile waits for the next one. In seconds from
        when that is ready."""
        with roles.started(self._bench, "matcher", self._database) as matcher:
            armed = self._arm(tasks, tasks // 5)
            _sleep_until(min(armed.deadlines.values()) + timedelta(seconds=0.2))
            matcher.kill()
        _sleep_until(armed.until + timedelta(seconds=0.1))
        if emptied:
            self._client.flushall()
        overdue = self._not_settled(armed)
        with roles.started(self._bench, "matcher", self._database):
            ready = time.time()
            until = time.monotonic() + RIVAL_PATIENCE_S
            while (left := self._not_settled(armed)) and time.monotonic() < until:
                time.sleep(0.2)
        say(f"recovery: {len(overdue):,} were overdue, {len(left):,} are lost")
        made = self._next_offers(armed)
        return [
            made[task_id].timestamp() - ready if task_id in made and task_id not in left else math.inf
            for task_id in overdue
        ]

    def bare_recovery(self, tasks: int, template: Template) -> list[float]:
        """Bare psycopg that finds as many overdue at once."""
        armed = self._arm(tasks, tasks // 5, warm_up=False)
        due = [one for _, one in self._due(armed)]
        _sleep_until(armed.until)
        done: list[float] = []
        with self._settling(template) as settle:
            began = time.perf_counter()
            for start in range(0, len(due), BATCH):
                batch = due[start : start + BATCH]
                settle(batch)
                done += [time.perf_counter() - began] * len(batch)
        return done

    @contextmanager
    def _settling(self, template: Template) -> Iterator[Callable[[Sequence[Due]], None]]:
        """Bare psycopg that does for a batch what the application would."""
        with (
            self._bench.connect(self._database, autocommit=False, options=MATCHER_OPTIONS) as conn,
            self._bench.connect(self._database, options=MATCHER_OPTIONS) as alone,
        ):
            yield lambda batch: template.run(conn, alone, batch, datetime.now(UTC) + timedelta(hours=10))

    def _next_offers(self, armed: Armed) -> dict[UUID, datetime]:
        """When they were committed."""
        with self._bench.connect(self._database) as conn:
            return dict(fetch(conn, NEXT_OFFERS, [armed.last_offer]))

    def _not_settled(self, armed: Armed) -> set[UUID]:
        with self._bench.connect(self._database) as conn:
            overdue = fetch(
                conn,
                "SELECT id FROM tasks WHERE id = ANY(%s) AND next_step_at <= clock_timestamp()",
                [list(armed.deadlines)],
            )
        return {row[0] for row in overdue}

    def event_alone(self, tasks: int, per_second: int) -> list[float]:
        """Redis's expired event, as a bare subscriber hears it; the transaction would come on top. A matcher will not
        do here: it sweeps now and then whatever is switched off."""
        self._client.config_set("notify-keyspace-events", "Ex")
        # Before anybody listens: what is left of earlier rounds makes its events while it is written over.
        armed = self._arm(tasks, per_second, warm_up=False)
        with self._client.pubsub(ignore_subscribe_messages=True) as events:
            events.subscribe(keys.expired_channel(0))
            heard = _hear(events, armed.until + timedelta(seconds=RIVAL_PATIENCE_S))
        return [
            (heard[task_id] - deadline.timestamp()) * 1e3 if task_id in heard else math.inf
            for task_id, deadline in armed.deadlines.items()
        ]

    def celery(self, tasks: int, per_second: int, template: Template) -> list[float]:
        """A task with an ETA for each offer, which does the same work in the database."""
        with celery_rival.worker(self._bench, self._database, template) as apply_at:
            armed = self._arm(tasks, per_second, lead_s=LEAD_S + tasks / 1_000)
            with self._listening() as commits:
                for moment, one in self._due(armed):
                    apply_at(moment, one)
                if datetime.now(UTC) > min(armed.warming.values()):
                    say("Celery was told of its first tasks only after they were due")
                _sleep_until(armed.until + timedelta(seconds=RIVAL_PATIENCE_S))
        return self._lateness(armed, commits)

    @contextmanager
    def _listening(self) -> Iterator[list[float]]:
        """When each wake-up call arrived on a connection of its own."""
        heard: list[float] = []
        with psycopg.connect(self._bench.url(self._database), autocommit=True) as conn:
            conn.execute(f"LISTEN {WAKE_CHANNEL}")  # pyright: ignore[reportArgumentType]
            ended = threading.Event()

            def listen() -> None:
                while not ended.is_set():
                    for _ in conn.notifies(timeout=0.2):
                        heard.append(time.time())

            thread = threading.Thread(target=listen, daemon=True)
            thread.start()
            try:
                yield heard
            finally:
                ended.set()
                thread.join()

    def template(self) -> Template:
        """The statements by which the application settles one task, captured on the first task of the warm-up."""
        with self._bench.services(self._database, offer_ttl_s=36_000) as services:
            ids = self._open_tasks()
            model = self._due_of([ids[0]])[ids[0]]
            with self._bench.connect(self._database) as conn:
                run(conn, "UPDATE offers SET deadline = clock_timestamp() WHERE task_id = %s", [ids[0]])
            with captured() as sent:
                services.matching.runner.advance([ids[0]], skip_locked=True, lists={ids[0]: list(model.left)})
        return Template(sent, model)

    def _open_tasks(self) -> list[UUID]:
        with self._bench.connect(self._database) as conn:
            return [row[0] for row in fetch(conn, f"SELECT id FROM tasks WHERE id < {FIRST_BYSTANDER} ORDER BY id")]

    def _arm(self, tasks: int, per_second: int, *, warm_up: bool = True, lead_s: float = LEAD_S) -> Armed:
        """The warm-up's tasks are the first ones by id; all others fall due in any order."""
        ids = self._open_tasks()
        warm, rest = ids[:WARM_UP], ids[WARM_UP : WARM_UP + tasks]
        self._random.shuffle(rest)
        lists = neighbourhoods.fill_lists(self._bench, self._database, self._world, self._client)
        assert len(lists) == len(ids), "every task has somebody left to ask"
        self._client.zrem(keys.DEADLINES, *map(str, ids))
        begin = datetime.now(UTC) + timedelta(seconds=lead_s)
        deadlines = {one: begin + timedelta(seconds=n / per_second) for n, one in enumerate(rest)}
        warming = {one: begin - timedelta(seconds=1.5 - n / 200) for n, one in enumerate(warm)} if warm_up else {}
        last_offer = self._set_deadlines(deadlines | warming)
        if datetime.now(UTC) > begin - timedelta(seconds=2):
            say("this machine was too slow to set the deadlines in time; trying again")
            return self._arm(tasks, per_second, warm_up=warm_up, lead_s=2 * lead_s)
        return Armed(deadlines, warming, last_offer, max(deadlines.values()))

    def _set_deadlines(self, deadlines: dict[UUID, datetime]) -> int:
        with self._bench.connect(self._database) as conn:
            values = {"ids": list(deadlines), "moments": list(deadlines.values())}
            with conn.transaction():
                run(conn, FAR_AWAY)
                run(conn, SET_OFFERS, values)
                run(conn, SET_TASKS, values)
            asked = dict(fetch(conn, ASKED))
            last = fetch(conn, "SELECT max(id) FROM offers")[0][0]
        pipe = self._client.pipeline(transaction=False)
        for task_id, moment in deadlines.items():
            pipe.set(keys.pending(task_id), asked[task_id], pxat=to_ms(moment))
            pipe.zadd(keys.DEADLINES, {str(task_id): to_ms(moment)})
        pipe.execute()
        return last

    def _due(self, armed: Armed) -> list[tuple[datetime, Due]]:
        moments = armed.deadlines | armed.warming
        found = self._due_of(list(moments))
        return sorted(((moments[one], due) for one, due in found.items()), key=lambda item: item[0])

    def _due_of(self, task_ids: Sequence[UUID]) -> dict[UUID, Due]:
        lists = neighbourhoods.LISTS.format(tasks=self._world.tasks, each=self._world.students_each)
        with self._bench.connect(self._database) as conn:
            left = dict(fetch(conn, lists))
            asked = fetch(conn, ASKED)
        wanted = set(task_ids)
        return {one: Due(one, student, left[str(one)]) for one, student in asked if one in wanted}

    def _lateness(self, armed: Armed, heard: Sequence[float]) -> list[float]:
        """In ms; infinite where no next offer came."""
        made = self._next_offers(armed)
        late: list[float] = []
        for task_id, deadline in armed.deadlines.items():
            committed = made.get(task_id)
            if committed is None:
                late.append(math.inf)
                continue
            # The stamp is taken just before the commit is written; the first call after it is that commit's.
            place = bisect.bisect_left(heard, committed.timestamp())
            seen = heard[place] if place < len(heard) else committed.timestamp()
            late.append((seen - deadline.timestamp()) * 1e3)
        return late


NEXT_OFFERS = "SELECT task_id, pg_xact_commit_timestamp(xmin) FROM offers WHERE id > %s"
ASKED = f"SELECT task_id, student_id FROM offers WHERE state = 'PENDING' AND task_id < {FIRST_BYSTANDER}"
FAR_AWAY = f"""
WITH far AS (SELECT clock_timestamp() + interval '10 hours' AS moment),
     live AS (UPDATE offers SET deadline = moment FROM far
              WHERE state = 'PENDING' AND deadline <> moment AND task_id < {FIRST_BYSTANDER})
UPDATE tasks SET next_step_at = moment FROM far WHERE status = 'PENDING' AND id < {FIRST_BYSTANDER}
"""
SET_OFFERS = """
UPDATE offers o SET deadline = p.moment FROM unnest(%(ids)s::uuid[], %(moments)s::timestamptz[]) AS p (id, moment)
WHERE o.task_id = p.id AND o.state = 'PENDING'
"""
SET_TASKS = """
UPDATE tasks t SET next_step_at = p.moment FROM unnest(%(ids)s::uuid[], %(moments)s::timestamptz[]) AS p (id, moment)
WHERE t.id = p.id
"""


def _hear(events: Any, until: datetime) -> dict[UUID | None, float]:
    heard: dict[UUID | None, float] = {}
    while (left_s := (until - datetime.now(UTC)).total_seconds()) > 0:
        if message := events.get_message(timeout=min(left_s, 1.0)):
            heard[keys.task_of_pending_key(message["data"])] = time.time()
    return heard


def _sleep_until(moment: datetime) -> None:
    while (left_s := (moment - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(left_s)
