"""Helpers for tests of matching: people at given distances, the keys in Redis, notifications, promises, threads."""

import itertools
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import machine.redis
import redis
from sqlalchemy import Connection, text

from app.api.services import Services
from app.db.database import Database
from app.foundation.errors import AppError
from app.jobs.checks.promises import AskedPeriod
from app.jobs.checks.questions_of_any_moment import AT_ANY_MOMENT
from app.matching.contract import NewTask, OfferView
from app.matching.rules.states import TaskStatus
from app.users import service as users
from app.users.models import Caller, LatLon, Platform, Role

SPOT = LatLon(40.9870, 29.0280)
NO_LIMITS = {
    "tasks_per_minute": 10_000,
    "tasks_per_hour": 10_000,
    "cancels_per_student": 10_000,
    "withdrawals_per_day": 10_000,
    "fastest_kmh": 1e9,
    "alarm_interval_s": 0,
}
"""For tests that press, cancel, withdraw and move faster than anybody may. `tests/abuse` is about these settings."""
NAMES = ("Ahmet Çelik", "Berat Şahin", "Ceren Güneş", "Deniz Arslan", "Elif Kaya", "Fatih Doğan")

PROJECTED = """
ST_Project(ST_SetSRID(ST_MakePoint(CAST(:lon AS float8), CAST(:lat AS float8)), 4326)::geography,
           CAST(:metres AS float8), radians(CAST(:bearing AS float8)))
"""


@dataclass(frozen=True)
class KeysShown:
    """What Redis holds for one task."""

    candidates: list[int]
    candidates_ttl_s: int
    asked: int | None
    asked_ttl_ms: int
    score_ms: float | None

    @property
    def nothing(self) -> bool:
        return not self.candidates and self.asked is None and self.score_ms is None


class Neighbourhood:
    def __init__(self, services: Services) -> None:
        self.services = services
        self.db = services.db
        self.matching = services.matching
        self._redis_url = services.settings.redis_url
        self._redis: Any = None
        self._names = itertools.cycle(NAMES)

    @property
    def redis(self) -> Any:
        if self._redis is None:
            self._redis = redis.Redis.from_url(self._redis_url, decode_responses=True)
        return self._redis

    def close(self) -> None:
        if self._redis is not None:
            self._redis.close()

    # ---- people ----

    def elder(
        self,
        name: str = "Ayşe Yılmaz",
        at: LatLon | None = SPOT,
        *,
        phone: str | None = "+905550000001",
        institution_id: int | None = None,
        locale: str = "tr",
    ) -> Caller:
        new = users.NewUser(Role.ELDER, name, phone, locale, location=at, institution_id=institution_id)
        return self._person(new)

    def elders(self, count: int, at: LatLon = SPOT) -> list[Caller]:
        return [self.elder(f"Elder{number} Yılmaz", at) for number in range(count)]

    def coordinator(
        self,
        name: str = "Zeynep Koç",
        *,
        institution_id: int | None = None,
        role: Role = Role.COORDINATOR,
        active: bool = True,
    ) -> Caller:
        new = users.NewUser(role, name, "+905550000009", institution_id=institution_id, active=active)
        return self._person(new)

    def student(
        self,
        metres: float,
        name: str | None = None,
        *,
        bearing: float = 0.0,
        at: LatLon = SPOT,
        completed: int = 0,
        months_ago: int = 0,
        active: bool = True,
        on_duty: bool = True,
        located: bool = True,
    ) -> Caller:
        """`completed` is the count of the month that began `months_ago` months before this one. The place is a day
        old, so that the student may have moved since."""
        new = users.NewUser(Role.STUDENT, name or next(self._names), "+905551112233", active=active)
        caller = self._person(new)
        self.run(
            f"""
            UPDATE students SET on_duty = :on_duty, completed = :completed,
                   month = (date_trunc('month', clock_timestamp() AT TIME ZONE :time_zone)
                            - make_interval(months => CAST(:months_ago AS int)))::date,
                   location = CASE WHEN :located THEN {PROJECTED} END,
                   location_at = clock_timestamp() - interval '1 day'
            WHERE id = :id""",
            id=caller.id,
            on_duty=on_duty,
            completed=completed,
            months_ago=months_ago,
            located=located,
            lat=at.lat,
            lon=at.lon,
            metres=metres,
            bearing=bearing,
            time_zone=self.services.settings.time_zone,
        )
        return caller

    def register_phone(self, person: Caller) -> None:
        with self.db.transaction() as conn:
            device = users.DeviceRegistration(f"phone-{person.id}", f"token-{person.id}", Platform.ANDROID)
            users.put_device(conn, person.id, device)

    def students(self, *metres: float, at: LatLon = SPOT) -> list[Caller]:
        return [self.student(distance, at=at) for distance in metres]

    def _person(self, new: users.NewUser) -> Caller:
        with self.db.transaction() as conn:
            id_ = users.create_user(conn, new).id
        home = None if new.role is Role.STUDENT else new.location
        return Caller(id_, new.role, new.name, new.locale, new.institution_id, home)

    def spot_at(self, metres: float, bearing: float = 0.0, at: LatLon = SPOT) -> LatLon:
        row = self.one(
            f"SELECT ST_Y(p::geometry) AS lat, ST_X(p::geometry) AS lon FROM (SELECT {PROJECTED} AS p) there",
            lat=at.lat,
            lon=at.lon,
            metres=metres,
            bearing=bearing,
        )
        return LatLon(row.lat, row.lon)

    # ---- deeds and time ----

    def press(self, elder: Caller | None = None, note: str | None = None, key: str | None = None) -> UUID:
        elder = elder or self.elder()
        return self.matching.press(elder, NewTask(elder.id, note), key).task.id

    def advance(self, *task_ids: UUID) -> None:
        """Settles these tasks, as a matcher does."""
        self.matching.runner.advance(task_ids)

    def make_overdue(self, *task_ids: UUID) -> None:
        make_overdue(self.db, *task_ids)

    def expire(self, *task_ids: UUID) -> None:
        """As if the deadline had passed and a matcher had noticed it."""
        self.make_overdue(*task_ids)
        self.advance(*task_ids)

    def age(self, task_id: UUID, seconds: float) -> None:
        """Moves all times of this task and its offers into the past."""
        columns = ("created_at", "search_until", "next_step_at", "assigned_at", "started_at")
        sets = ", ".join(f"{column} = {column} - make_interval(secs => :seconds)" for column in columns)
        self.run(f"UPDATE tasks SET {sets} WHERE id = :id", id=task_id, seconds=seconds)
        self.run(
            "UPDATE offers SET offered_at = offered_at - make_interval(secs => :seconds),"
            " deadline = deadline - make_interval(secs => :seconds) WHERE task_id = :id",
            id=task_id,
            seconds=seconds,
        )

    # ---- rows and keys ----

    def status(self, task_id: UUID) -> TaskStatus:
        return TaskStatus(self.task(task_id).status)

    def task(self, task_id: UUID) -> Any:
        return self.one("SELECT * FROM tasks WHERE id = :id", id=task_id)

    def asked(self, task_id: UUID) -> int | None:
        """The student with the live offer."""
        rows = self.all("SELECT student_id FROM offers WHERE task_id = :id AND state = 'PENDING'", id=task_id)
        return rows[0].student_id if rows else None

    def asked_in_order(self, task_id: UUID) -> list[int]:
        rows = self.all(
            "SELECT student_id FROM offers WHERE task_id = :id AND offered_at IS NOT NULL ORDER BY offered_at, id",
            id=task_id,
        )
        return [row.student_id for row in rows]

    def states(self, task_id: UUID) -> list[tuple[int, str, str | None]]:
        return [(view.student_id, view.state.value, view.reason) for view in self.offers(task_id)]

    def offers(self, task_id: UUID) -> Sequence[OfferView]:
        coordinator = Caller(0, Role.COORDINATOR, "", "tr", None)
        return self.matching.offers(coordinator, task_id)

    def keys(self, task_id: UUID) -> KeysShown:
        candidates, pending = f"task_candidates:{task_id}", f"pending_assignment:{task_id}"
        asked = self.redis.get(pending)
        return KeysShown(
            candidates=[int(item) for item in self.redis.lrange(candidates, 0, -1)],
            candidates_ttl_s=self.redis.ttl(candidates),
            asked=int(asked) if asked else None,
            asked_ttl_ms=self.redis.pttl(pending),
            score_ms=self.redis.zscore("offer_deadlines", str(task_id)),
        )

    def told(self, person: Caller | None = None, kind: str | None = None, task_id: UUID | None = None) -> list[Any]:
        """Notifications to people in the order in which they were written. Without arguments, all of them."""
        return self.all(
            """
            SELECT *, metadata -> 'data' ->> 'type' AS kind FROM notifications
            WHERE notification_type <> 'AUDIT'
              AND (CAST(:person AS bigint) IS NULL OR recipient_user_id = :person)
              AND (CAST(:kind AS text) IS NULL OR metadata -> 'data' ->> 'type' = :kind)
              AND (CAST(:task AS uuid) IS NULL OR task_id = :task)
            ORDER BY id""",
            person=person.id if person else None,
            kind=kind,
            task=task_id,
        )

    def bodies(self, person: Caller, kind: str | None = None) -> list[str]:
        return [row.body for row in self.told(person, kind)]

    # ---- SQL ----

    def run(self, statement: str, **values: Any) -> None:
        with self.db.transaction() as conn:
            conn.execute(text(statement), values)

    def all(self, statement: str, **values: Any) -> list[Any]:
        with self.db.transaction() as conn:
            return list(conn.execute(text(statement), values))

    def one(self, statement: str, **values: Any) -> Any:
        [row] = self.all(statement, **values)
        return row


# ---- promises ----

WHOLE_HISTORY = AskedPeriod(UUID(int=0), UUID(int=0))

# The questions of the product about notices ask for actions, because operators edit plans. Tests know the plans.
WITH_SHIPPED_PLANS = {
    "an offer without a notification to its student": """
        SELECT o.id FROM offers o
        WHERE o.offered_at IS NOT NULL AND NOT EXISTS (
            SELECT FROM notifications n WHERE n.task_id = o.task_id AND n.recipient_user_id = o.student_id
              AND n.metadata -> 'data' ->> 'type' IN ('OFFER', 'ASSIGNED_TO_YOU'))""",
    "an offer with two notifications": """
        SELECT task_id, recipient_user_id FROM notifications WHERE metadata -> 'data' ->> 'type' = 'OFFER'
        GROUP BY task_id, recipient_user_id HAVING count(*) > 1""",
    "a search that timed out without exactly one notice to the elder": """
        SELECT t.id FROM tasks t WHERE t.status = 'TIMED_OUT' AND 1 <> (
            SELECT count(DISTINCT coalesce(n.action_id, n.id)) FROM notifications n WHERE n.task_id = t.id
              AND n.recipient_user_id = t.elder_id AND n.metadata -> 'data' ->> 'type' = 'NOBODY_FOUND')""",
}
ANY_MOMENT = {question.name: question.sql for question in AT_ANY_MOMENT} | WITH_SHIPPED_PLANS


def broken_promises(conn: Connection) -> dict[str, list[Any]]:
    """The promises that are broken in committed rows, with these rows. Must be empty at any moment."""
    found = {name: list(conn.execute(text(sql), WHOLE_HISTORY.values)) for name, sql in ANY_MOMENT.items()}
    return {name: rows for name, rows in found.items() if rows}


@contextmanager
def town_that_keeps_its_promises(services: Services) -> Iterator[Neighbourhood]:
    built = Neighbourhood(services)
    yield built
    with services.db.transaction() as conn:
        assert broken_promises(conn) == {}
    built.close()


# ---- time and threads ----


def eventually(condition: Callable[[], Any], what: str, within_s: float = 30.0) -> Any:
    """Waits until `condition` returns a true value, and returns it. `what` describes it in the message of a failure."""
    give_up = time.monotonic() + within_s
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < give_up, f"not within {within_s} s: {what}"
        time.sleep(0.01)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Runs the calls in threads that start together. Returns for each its result or its refusal; raises any other
    error."""
    barrier = threading.Barrier(len(calls))
    outcomes: list[Any] = [None] * len(calls)

    def run(index: int, call: Callable[[], Any]) -> None:
        barrier.wait(timeout=10)
        try:
            outcomes[index] = call()
        except Exception as error:
            outcomes[index] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive(), "a call did not end within 30 s"
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not _is_refusal(outcome):
            raise outcome
    return outcomes


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, AppError) and error.code not in ("database_unavailable", "try_again")


@contextmanager
def own_redis(*options: str) -> Iterator[str]:
    """Starts a Redis with these options for one test. Yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    program = machine.redis.server()
    assert program is not None, "scripts/test installs Redis"
    fixed = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen([program, *fixed, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/0"
    client: Any = redis.Redis.from_url(url)

    def answers() -> bool:
        with suppress(redis.ConnectionError):
            return client.ping()
        return False

    try:
        eventually(answers, "the new Redis answers PING")
        yield url
    finally:
        client.close()
        process.terminate()
        process.wait(timeout=10)


class Gate:
    """A TCP proxy in front of Redis that a test can close and open again, as when a machine is away for a while."""

    def __init__(self, redis_url: str) -> None:
        self._target = urlsplit(redis_url)
        self._open = False
        self._lock = threading.Lock()
        self._pairs: list[socket.socket] = []
        self._listener: socket.socket | None = None
        with socket.create_server(("127.0.0.1", 0)) as chosen:
            self._port = chosen.getsockname()[1]
        self.open()

    @property
    def url(self) -> str:
        return self._target._replace(netloc=f":{self._target.password or ''}@127.0.0.1:{self._port}").geturl()

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._open = True
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._open = False
            pairs, self._pairs = self._pairs, []
        for one in [self._listener, *pairs]:
            if one is not None:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
        self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection((self._target.hostname or "127.0.0.1", self._target.port or 6379))
            with self._lock:
                if not self._open:
                    near.close()
                    far.close()
                    return
                self._pairs += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_forward, args=(source, target), daemon=True).start()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def make_overdue(db: Database, *task_ids: UUID) -> None:
    """As if the deadline of the live offer had passed, for tasks that are PENDING."""
    with db.transaction() as conn:
        found = conn.execute(
            text(
                "SELECT id, clock_timestamp() - interval '1 ms' AS past FROM tasks"
                " WHERE id = ANY(:ids) AND status = 'PENDING' ORDER BY id FOR NO KEY UPDATE"
            ),
            {"ids": list(task_ids)},
        )
        for id_, past in found.all():
            for statement in (
                "UPDATE offers SET deadline = :past WHERE task_id = :id AND state = 'PENDING'",
                "UPDATE tasks SET next_step_at = :past WHERE id = :id",
            ):
                conn.execute(text(statement), {"id": id_, "past": past})
