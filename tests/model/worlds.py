"""The world of the model: real stores, in which time passes by moving all stored times into the past."""

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import redis
from sqlalchemy import Connection, text

from app.api.services import Services
from app.db.database import Database
from app.foundation.clock import Clock
from app.matching.follow_up import FollowUp
from app.matching.redis_sync import CHECK_AFTER, RedisSync
from app.matching.rules.matching_rules import MatchingRules
from app.matching.service import Matching
from app.matching.store.records import MadeTask, NewSearch, Pick, Progress
from app.matching.store.stores import Store, Stores
from app.redis_store import keys
from app.redis_store.contract import from_ms
from app.redis_store.store import RedisClockwork
from app.users import service as users
from app.users.models import Caller, LatLon, Role

PLACE = LatLon(40.9870, 29.0280)


@dataclass(frozen=True)
class OfferRow:
    id: int
    task_id: UUID
    student_id: int
    state: str
    reason: str | None
    rank: int | None
    completed: int
    distance_m: float | None
    offered_at: datetime | None
    deadline: datetime | None


@dataclass(frozen=True)
class TaskRow:
    id: UUID
    status: str
    student_id: int | None
    asked: int
    skipped: int
    listed: int
    waiting: bool
    next_step_at: datetime | None
    ended: bool


Notified = Counter[tuple[int, str, UUID]]
"""Counts notifications by person, kind and task."""


@dataclass(frozen=True)
class Snapshot:
    """The rows in PostgreSQL that the model checks."""

    now: datetime
    tasks: dict[UUID, TaskRow]
    offers: list[OfferRow]
    notified: Notified
    withdrawn_pushes: set[tuple[int, UUID]]
    """(student, task) of offers whose push was cancelled."""


@dataclass(frozen=True)
class RedisValues:
    """What Redis holds for one task."""

    candidates: list[int]
    asked: int | None
    next_step_at: datetime | None


Interruption = Callable[[Store], FollowUp]


class InterruptedStores(Stores):
    """Stores in which another process commits a transaction in the middle of one.

    It commits either before the students are locked, between the two reads of who may be asked; or before the progress
    is saved, after the decision to wait and before its commit."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._others = Stores(db)
        self.interruption: Interruption | None = None
        self.before = "lock_students"
        self.follow_up: FollowUp | None = None
        """What the other process must do after its commit."""

    @contextmanager
    def transaction(self) -> Generator[Store]:
        with self._db.transaction() as conn:
            yield _InterruptedStore(conn, self.interrupt)

    def interrupt(self, before: str) -> None:
        if before != self.before:
            return
        interruption, self.interruption = self.interruption, None
        if interruption is not None:
            with self._others.transaction() as store:
                self.follow_up = interruption(store)


class _InterruptedStore(Store):
    def __init__(self, conn: Connection, interrupt: Callable[[str], None]) -> None:
        super().__init__(conn)
        self._interrupt = interrupt

    def lock_students(self, ids: Iterable[int], *, skip_locked: bool = False) -> dict[int, int]:
        self._interrupt("lock_students")
        return super().lock_students(ids, skip_locked=skip_locked)

    def ask(self, picks: Sequence[Pick], ttl: timedelta, *, skip_locked: bool = False) -> Any:
        self._interrupt("lock_students")
        return super().ask(picks, ttl, skip_locked=skip_locked)

    def lock_student_later(self, student_id: int) -> Callable[[], int | None]:
        self._interrupt("lock_students")
        return super().lock_student_later(student_id)

    def make_task(self, new: NewSearch, pick: Pick | None, ttl: timedelta, search_limit: timedelta) -> MadeTask | None:
        self._interrupt("make_task")
        return super().make_task(new, pick, ttl, search_limit)

    def save_progress(self, progress: Sequence[Progress]) -> Callable[[], dict[UUID, datetime]]:
        self._interrupt("save_progress")
        return super().save_progress(progress)


class ClockAhead:
    """A clock two seconds ahead, because `RedisSync` compares only changes that are older than that."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now() + CHECK_AFTER


def _month(now: datetime, rules: MatchingRules) -> date:
    return now.astimezone(ZoneInfo(rules.time_zone)).date().replace(day=1)


class BreakablePool(redis.ConnectionPool):
    """Connections to a Redis that a test can make unreachable."""

    broken = False

    def get_connection(self, *args: Any, **options: Any) -> Any:
        if self.broken:
            raise redis.ConnectionError("The test has made Redis unreachable.")
        return super().get_connection(*args, **options)


SHIFTS = (
    "UPDATE tasks SET created_at = created_at - :by, search_until = search_until - :by,"
    " next_step_at = next_step_at - :by, assigned_at = assigned_at - :by, started_at = started_at - :by",
    "UPDATE offers SET offered_at = offered_at - :by, deadline = deadline - :by",
)


class World:
    def __init__(self, rules: MatchingRules, services: Services) -> None:
        self.rules = rules
        self.db = services.db
        self.stores = InterruptedStores(services.db)
        self._pool = BreakablePool.from_url(services.settings.redis_url, decode_responses=True)
        self._redis: Any = redis.Redis.from_url(services.settings.redis_url, decode_responses=True)
        self.clockwork = RedisClockwork(redis.Redis(connection_pool=self._pool), down_pause_s=0)
        self._clock = services.clock
        self._passed = timedelta(0)
        self.matching = Matching(self.stores, self.stores, self.clockwork, self._clock, rules)
        self.redis_sync = RedisSync(self.stores, self.clockwork, ClockAhead(self._clock), rules)

    def close(self) -> None:
        self._pool.disconnect()
        self._redis.close()

    def clear(self) -> None:
        self._run("TRUNCATE tasks, offers, actions, notifications, notification_attempts, students, users CASCADE")
        self._redis.flushdb()

    def now(self) -> datetime:
        """The time of the database plus all time that the test made pass. Snapshots show times on this scale."""
        return self.db.now() + self._passed

    def month(self) -> date:
        return _month(self.db.now(), self.rules)

    def claim(self, most: int) -> list[UUID]:
        return self.clockwork.claim_due(self.db.now(), most).task_ids

    def pass_time(self, seconds: float) -> None:
        milliseconds = math.ceil(seconds * 1000)
        by = timedelta(milliseconds=milliseconds)
        self._passed += by
        with self.db.transaction() as conn:
            for statement in SHIFTS:
                conn.execute(text(statement), {"by": by})
        for task_id in self._redis.zrange(keys.DEADLINES, 0, -1):
            self._redis.zincrby(keys.DEADLINES, -milliseconds, task_id)
        for key in self._redis.keys("*"):
            left = self._redis.pttl(key)
            if left > milliseconds:
                self._redis.pexpire(key, left - milliseconds)
            elif left >= 0:
                self._redis.delete(key)

    def begin_a_month(self) -> None:
        self._run("UPDATE students SET month = month - interval '1 month' WHERE month > '-infinity'")

    def elder(self, metres: float) -> Caller:
        return self._person(users.NewUser(Role.ELDER, "N", location=self.spot(metres)))

    def student(self, metres: float) -> Caller:
        return self._person(users.NewUser(Role.STUDENT, "N", location=self.spot(metres)))

    def coordinator(self) -> Caller:
        return self._person(users.NewUser(Role.COORDINATOR, "N"))

    def _person(self, new: users.NewUser) -> Caller:
        with self.db.transaction() as conn:
            return Caller(users.create_user(conn, new).id, new.role, new.name, "tr", None)

    def spot(self, metres: float) -> LatLon:
        [row] = self._rows(
            "SELECT ST_Y(p::geometry) AS lat, ST_X(p::geometry) AS lon FROM (SELECT ST_Project("
            "ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography, CAST(:metres AS float8), 0) AS p) there",
            lat=PLACE.lat,
            lon=PLACE.lon,
            metres=metres,
        )
        return LatLon(row.lat, row.lon)

    def hide(self, student_id: int) -> None:
        self._run("UPDATE students SET location = NULL WHERE id = :id", id=student_id)

    def snapshot(self) -> Snapshot:
        tasks = {
            row.id: TaskRow(
                row.id,
                row.status,
                row.student_id,
                row.asked,
                row.skipped,
                row.listed,
                row.waiting,
                self._unshifted(row.next_step_at),
                row.ended_at is not None,
            )
            for row in self._rows("SELECT * FROM tasks")
        }
        offers = [
            OfferRow(
                row.id,
                row.task_id,
                row.student_id,
                row.state,
                row.reason,
                row.rank,
                row.completed_this_month,
                row.distance_m,
                self._unshifted(row.offered_at),
                self._unshifted(row.deadline),
            )
            for row in self._rows("SELECT * FROM offers")
        ]
        notified: Notified = Counter()
        cancelled: set[tuple[int, UUID]] = set()
        for row in self._rows(
            "SELECT recipient_user_id AS person, metadata -> 'data' ->> 'type' AS kind, task_id, status"
            " FROM notifications WHERE notification_type <> 'AUDIT'"
        ):
            notified[row.person, row.kind, row.task_id] += 1
            if row.status == "CANCELLED":
                cancelled.add((row.person, row.task_id))
        return Snapshot(self.now(), tasks, offers, notified, cancelled)

    def redis_values(self, task_id: UUID) -> RedisValues:
        asked = self._redis.get(keys.pending(task_id))
        score = self._redis.zscore(keys.DEADLINES, str(task_id))
        listed = self._redis.lrange(keys.candidates(task_id), 0, -1)
        return RedisValues(
            [int(item) for item in listed],
            int(asked) if asked else None,
            None if score is None else self._unshifted(from_ms(score)),
        )

    def lose_redis(self) -> None:
        self._redis.flushdb()

    def lose_lists(self) -> None:
        for key in self._redis.keys("task_candidates:*"):
            self._redis.delete(key)

    def set_redis_down(self, down: bool) -> None:
        self._pool.broken = down

    def _unshifted(self, moment: datetime | None) -> datetime | None:
        return None if moment is None else moment + self._passed

    def _run(self, statement: str, **values: Any) -> None:
        with self.db.transaction() as conn:
            conn.execute(text(statement), values)

    def _rows(self, statement: str, **values: Any) -> Iterable[Any]:
        with self.db.reading() as conn:
            return list(conn.execute(text(statement), values))


def open_world(services: Services) -> Iterator[World]:
    """A fixture function: test modules wrap it in `pytest.fixture`."""
    world = World(MatchingRules(), services)
    yield world
    world.close()
