"""Sets the deadlines of live offers, runs ours, the floor or the rival, and measures when the next offers come.

An offer counts from the moment when another connection is notified of its commit: each transaction of an offer sends a
NOTIFY that wakes delivery, and PostgreSQL delivers it after the commit is on disk.
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
from app.matching.cascade import Lists, settle
from app.redis_store import keys
from app.redis_store.contract import to_ms
from benchmarks import celery_rival, neighbourhoods, roles
from benchmarks.bench import MATCHER_OPTIONS, Bench, fetch, run, say
from benchmarks.capture import captured
from benchmarks.neighbourhoods import FIRST_BYSTANDER, Neighbourhoods
from benchmarks.replay import Due, Template

LEAD_S = 4.0
"""From setting the deadlines to the first one that is measured."""
WARM_UP = 200
GRACE_S = 3.0
BATCH = 200
RIVAL_PATIENCE_S = 25.0


@dataclass(frozen=True)
class Schedule:
    """Deadlines by task: those that are measured, and those of the warm-up. `until` is the last measured one."""

    deadlines: dict[UUID, datetime]
    warming: dict[UUID, datetime]
    last_offer: int
    until: datetime


@dataclass(frozen=True)
class Lateness:
    ms: Sequence[float]
    """From each deadline to the committed next offer; infinite without one."""
    processor_ms: float
    """Of the process, or of the floor's thread, for each offer. Unlike lateness, it hardly depends on other load."""


class DeadlineRuns:
    def __init__(self, bench: Bench, database: str, world: Neighbourhoods, client: Any) -> None:
        self._bench = bench
        self._database = database
        self._world = world
        self._client = client
        self._random = random.Random(7)

    def ours(self, tasks: int, per_second: int) -> Lateness:
        with self._listening() as commits, roles.role(self._bench, "matcher", self._database) as pid:
            schedule = self._make_schedule(tasks, per_second)
            _sleep_until(min(schedule.deadlines.values()))
            before_s = roles.processor_s(pid)
            _sleep_until(schedule.until + timedelta(seconds=GRACE_S))
            used_s = roles.processor_s(pid) - before_s
        return Lateness(self._lateness(schedule, commits), 1e3 * used_s / tasks)

    def floor(self, tasks: int, per_second: int, template: Template) -> Lateness:
        """Bare psycopg that has all deadlines in memory."""
        schedule = self._make_schedule(tasks, per_second)
        due = self._due(schedule)
        with self._listening() as commits, self._settling(template) as settle:
            before_s = time.thread_time()
            while due:
                _sleep_until(due[0][0])
                now = datetime.now(UTC)
                ready = [one for moment, one in due[:BATCH] if moment <= now]
                settle(ready)
                del due[: len(ready)]
            used_s = time.thread_time() - before_s
            time.sleep(1)
        self._make_old()
        return Lateness(self._lateness(schedule, commits), 1e3 * used_s / (tasks + WARM_UP))

    def after_a_crash(self, tasks: int, *, emptied: bool) -> list[float]:
        """Kills the only matcher while it works and starts a new one when all offers are due. Returns, for each overdue
        offer, the seconds from the new matcher's readiness to the next offer."""
        with roles.started(self._bench, "matcher", self._database) as matcher:
            schedule = self._make_schedule(tasks, tasks // 5)
            _sleep_until(min(schedule.deadlines.values()) + timedelta(seconds=0.2))
            matcher.kill()
        _sleep_until(schedule.until + timedelta(seconds=0.1))
        if emptied:
            self._client.flushall()
        overdue = self._not_settled(schedule)
        with roles.started(self._bench, "matcher", self._database):
            ready = time.time()
            until = time.monotonic() + RIVAL_PATIENCE_S
            while (left := self._not_settled(schedule)) and time.monotonic() < until:
                time.sleep(0.2)
        say(f"recovery: {len(overdue):,} offers were overdue, {len(left):,} were not handled")
        made = self._next_offers(schedule)
        return [
            made[task_id].timestamp() - ready if task_id in made and task_id not in left else math.inf
            for task_id in overdue
        ]

    def bare_recovery(self, tasks: int, template: Template) -> list[float]:
        """Bare psycopg that settles as many overdue offers, in batches."""
        schedule = self._make_schedule(tasks, tasks // 5, warm_up=False)
        due = [one for _, one in self._due(schedule)]
        _sleep_until(schedule.until)
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
        """Yields a function that settles a batch with bare psycopg, by the statements of the application."""
        with (
            self._bench.connect(self._database, autocommit=False, options=MATCHER_OPTIONS) as conn,
            self._bench.connect(self._database, options=MATCHER_OPTIONS) as alone,
        ):
            yield lambda batch: template.run(conn, alone, batch, datetime.now(UTC) + timedelta(hours=10))

    def _next_offers(self, schedule: Schedule) -> dict[UUID, datetime]:
        """Commit times of the new offers, by task."""
        with self._bench.connect(self._database) as conn:
            return dict(fetch(conn, NEXT_OFFERS, [schedule.last_offer]))

    def _not_settled(self, schedule: Schedule) -> set[UUID]:
        with self._bench.connect(self._database) as conn:
            overdue = fetch(
                conn,
                "SELECT id FROM tasks WHERE id = ANY(%s) AND next_step_at <= clock_timestamp()",
                [list(schedule.deadlines)],
            )
        return {row[0] for row in overdue}

    def event_alone(self, tasks: int, per_second: int) -> list[float]:
        """How late a bare subscriber receives the expired event of Redis, without any transaction. A matcher cannot
        measure this, because it sweeps from time to time whatever is switched off."""
        self._client.config_set("notify-keyspace-events", "Ex")
        # Before the subscription, because overwriting the keys of earlier rounds fires their events.
        schedule = self._make_schedule(tasks, per_second, warm_up=False)
        with self._client.pubsub(ignore_subscribe_messages=True) as events:
            events.subscribe(keys.expired_channel(0))
            arrived = _receive_events(events, schedule.until + timedelta(seconds=RIVAL_PATIENCE_S))
        return [
            (arrived[task_id] - deadline.timestamp()) * 1e3 if task_id in arrived else math.inf
            for task_id, deadline in schedule.deadlines.items()
        ]

    def celery(self, tasks: int, per_second: int, template: Template) -> list[float]:
        """A Celery task with an ETA for each offer, which runs the same statements."""
        with celery_rival.worker(self._bench, self._database, template) as apply_at:
            schedule = self._make_schedule(tasks, per_second, lead_s=LEAD_S + tasks / 1_000)
            with self._listening() as commits:
                for moment, one in self._due(schedule):
                    apply_at(moment, one)
                if datetime.now(UTC) > min(schedule.warming.values()):
                    say("the first Celery tasks were scheduled only after they were due")
                _sleep_until(schedule.until + timedelta(seconds=RIVAL_PATIENCE_S))
        self._make_old()
        return self._lateness(schedule, commits)

    def _make_old(self) -> None:
        """The floor and the rival tell Redis nothing. The next matcher would find all their changes of the last seconds
        and write them to Redis while it is measured: thousands of tasks, with deadlines that have changed meanwhile."""
        with self._bench.connect(self._database) as conn:
            changed = [row[0] for row in fetch(conn, MAKE_OLD)]
        if changed:
            self._client.delete(*map(keys.version, changed))

    @contextmanager
    def _listening(self) -> Iterator[list[float]]:
        """Listens on another connection; yields the arrival times of the notifications."""
        arrived: list[float] = []
        with psycopg.connect(self._bench.url(self._database), autocommit=True) as conn:
            conn.execute(f"LISTEN {WAKE_CHANNEL}")  # pyright: ignore[reportArgumentType]
            ended = threading.Event()

            def listen() -> None:
                while not ended.is_set():
                    for _ in conn.notifies(timeout=0.2):
                        arrived.append(time.time())

            thread = threading.Thread(target=listen, daemon=True)
            thread.start()
            try:
                yield arrived
            finally:
                ended.set()
                thread.join()

    def template(self) -> Template:
        """Records the statements with which the application settles the first task of the warm-up."""
        with self._bench.services(self._database, offer_ttl_s=36_000) as services:
            ids = self._open_tasks()
            model = self._due_of([ids[0]])[ids[0]]
            with self._bench.connect(self._database) as conn:
                run(conn, "UPDATE offers SET deadline = clock_timestamp() WHERE task_id = %s", [ids[0]])
            runner = services.matching.runner
            # As `runner.advance` does, but with a list that Redis does not hold.
            with captured() as sent:
                with runner.stores.transaction() as store:
                    settled = settle(store, [ids[0]], Lists({ids[0]: model.left}), runner.rules, skip_locked=True)
                runner.follow_up(settled.follow_up(), skip_locked=True)
        return Template(sent, model)

    def _open_tasks(self) -> list[UUID]:
        with self._bench.connect(self._database) as conn:
            return [row[0] for row in fetch(conn, f"SELECT id FROM tasks WHERE id < {FIRST_BYSTANDER} ORDER BY id")]

    def _make_schedule(self, tasks: int, per_second: int, *, warm_up: bool = True, lead_s: float = LEAD_S) -> Schedule:
        """The tasks of the warm-up are the first by id; all others fall due in random order."""
        ids = self._open_tasks()
        warm, rest = ids[:WARM_UP], ids[WARM_UP : WARM_UP + tasks]
        self._random.shuffle(rest)
        lists = neighbourhoods.fill_lists(self._bench, self._database, self._world, self._client)
        assert len(lists) == len(ids), "every task must have a candidate left"
        while True:
            self._client.zrem(keys.DEADLINES, *map(str, ids))
            begin = datetime.now(UTC) + timedelta(seconds=lead_s)
            deadlines = {one: begin + timedelta(seconds=n / per_second) for n, one in enumerate(rest)}
            warming = {one: begin - timedelta(seconds=1.5 - n / 200) for n, one in enumerate(warm)} if warm_up else {}
            last_offer = self._set_deadlines(deadlines | warming, in_time_until=begin - timedelta(seconds=2))
            if last_offer is not None:
                return Schedule(deadlines, warming, last_offer, max(deadlines.values()))
            say("this machine was too slow to set the deadlines in time; retrying with more time")
            self._client.delete(*map(keys.pending, deadlines | warming))
            lead_s *= 2

    def _set_deadlines(self, deadlines: dict[UUID, datetime], in_time_until: datetime) -> int | None:
        """The id of the last offer before; None if it took too long. Then nothing was committed: a matcher that saw
        deadlines which have passed would ask the next students, and the tasks would run out of them."""
        with self._bench.connect(self._database) as conn, conn.transaction():
            values = {"ids": list(deadlines), "moments": list(deadlines.values())}
            run(conn, FAR_DEADLINES)
            run(conn, SET_OFFERS, values)
            run(conn, SET_TASKS, values)
            last: int = fetch(conn, "SELECT max(id) FROM offers")[0][0]
            # The keys alone let no offer fall due, because the matcher reads the rows again.
            self._write_keys(deadlines, dict(fetch(conn, ASKED)))
            if datetime.now(UTC) > in_time_until:
                raise psycopg.Rollback
            return last
        return None

    def _write_keys(self, deadlines: dict[UUID, datetime], asked: dict[UUID, int]) -> None:
        pipe = self._client.pipeline(transaction=False)
        for task_id, moment in deadlines.items():
            pipe.set(keys.pending(task_id), asked[task_id], pxat=to_ms(moment))
            pipe.zadd(keys.DEADLINES, {str(task_id): to_ms(moment)})
        pipe.execute()

    def _due(self, schedule: Schedule) -> list[tuple[datetime, Due]]:
        moments = schedule.deadlines | schedule.warming
        found = self._due_of(list(moments))
        return sorted(((moments[one], due) for one, due in found.items()), key=lambda item: item[0])

    def _due_of(self, task_ids: Sequence[UUID]) -> dict[UUID, Due]:
        lists = neighbourhoods.LISTS.format(tasks=self._world.tasks, each=self._world.students_each)
        with self._bench.connect(self._database) as conn:
            left = dict(fetch(conn, lists))
            asked = fetch(conn, ASKED)
        wanted = set(task_ids)
        return {one: Due(one, student, left[str(one)]) for one, student in asked if one in wanted}

    def _lateness(self, schedule: Schedule, arrived: Sequence[float]) -> list[float]:
        """In ms; infinite for a task without a next offer."""
        made = self._next_offers(schedule)
        late: list[float] = []
        for task_id, deadline in schedule.deadlines.items():
            committed = made.get(task_id)
            if committed is None:
                late.append(math.inf)
                continue
            # The commit timestamp is taken just before the commit is written, so the first notification after it is
            # that of this commit.
            place = bisect.bisect_left(arrived, committed.timestamp())
            seen = arrived[place] if place < len(arrived) else committed.timestamp()
            late.append((seen - deadline.timestamp()) * 1e3)
        return late


NEXT_OFFERS = "SELECT task_id, pg_xact_commit_timestamp(xmin) FROM offers WHERE id > %s"
ASKED = f"SELECT task_id, student_id FROM offers WHERE state = 'PENDING' AND task_id < {FIRST_BYSTANDER}"
FAR_DEADLINES = f"""
WITH far AS (SELECT clock_timestamp() + interval '10 hours' AS moment),
     live AS (UPDATE offers SET deadline = moment FROM far
              WHERE state = 'PENDING' AND deadline <> moment AND task_id < {FIRST_BYSTANDER})
UPDATE tasks SET next_step_at = moment FROM far WHERE status = 'PENDING' AND id < {FIRST_BYSTANDER}
"""
MAKE_OLD = f"""
UPDATE tasks SET updated_at = updated_at - interval '1 hour'
WHERE updated_at > clock_timestamp() - interval '10 minutes' AND id < {FIRST_BYSTANDER} RETURNING id
"""
SET_OFFERS = """
UPDATE offers o SET deadline = p.moment FROM unnest(%(ids)s::uuid[], %(moments)s::timestamptz[]) AS p (id, moment)
WHERE o.task_id = p.id AND o.state = 'PENDING'
"""
SET_TASKS = """
UPDATE tasks t SET next_step_at = p.moment FROM unnest(%(ids)s::uuid[], %(moments)s::timestamptz[]) AS p (id, moment)
WHERE t.id = p.id
"""


def _receive_events(events: Any, until: datetime) -> dict[UUID | None, float]:
    arrived: dict[UUID | None, float] = {}
    while (left_s := (until - datetime.now(UTC)).total_seconds()) > 0:
        if message := events.get_message(timeout=min(left_s, 1.0)):
            arrived[keys.task_of_pending_key(message["data"])] = time.time()
    return arrived


def _sleep_until(moment: datetime) -> None:
    while (left_s := (moment - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(left_s)
