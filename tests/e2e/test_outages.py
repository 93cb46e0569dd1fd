"""A real API while a store is dead or silent: every press is answered in time, and no change is left incomplete. The
promised limits are 1 s without Redis, and the setting REQUEST_TIMEOUT_S without PostgreSQL.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from machine import processes
from sqlalchemy import text

from app.api.services import Services
from app.api.tokens import LocalTokens
from app.bootstrap.build_services import build_services
from app.cli.migrate import upgrade
from app.settings.settings import Settings
from app.users.models import Caller
from tests.conftest import SECRET
from tests.support import mishaps
from tests.support.changing_lists import WHAT, ChangingLists
from tests.support.depth import size
from tests.support.matching import Neighbourhood, broken_promises
from tests.support.serving import eventually, free_port
from tests.support.world import empty_stores
from tests.torture.stores import Stores, stores

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 4.0
WITHOUT_REDIS_S = 1.0
THREADS = 4
OWN_POOL = 4
OFFER_S, LATE_S = 600, 100
POINTS = size(suite=2, deep=20)


@dataclass(frozen=True)
class Answer:
    status: int
    kind: str | None
    retry_after: str | None
    body: Any
    took_s: float


@dataclass(frozen=True)
class Service:
    port: int
    services: Services
    stores: Stores
    town: Neighbourhood

    def call(self, caller: Caller, method: str, path: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10 * LIMIT_S)
        began = time.monotonic()
        connection.request(method, path, headers={"Authorization": f"Bearer {LocalTokens(SECRET).issue(caller.id)}"})
        answer = connection.getresponse()
        body = json.loads(answer.read() or b"null")
        took_s = time.monotonic() - began
        connection.close()
        return Answer(answer.status, answer.getheader("Content-Type"), answer.getheader("Retry-After"), body, took_s)

    def press(self, elder: Caller) -> Answer:
        return self.call(elder, "POST", "/tasks")

    def all_press(self, elders: Sequence[Caller]) -> list[Answer]:
        answers: list[Answer] = []
        threads = [threading.Thread(target=lambda who=who: answers.append(self.press(who))) for who in elders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == len(elders), "every press must be answered"
        return answers

    def check_complete(self, *elders: Caller) -> None:
        """After another press, as people do, every elder has exactly one task."""
        for elder in elders:
            assert self.press(elder).status in (200, 201)
        with self.services.db.transaction() as conn:
            assert broken_promises(conn) == {}
            of_each = conn.execute(
                text("SELECT elder_id, count(*) FROM tasks WHERE elder_id = ANY(:ids) GROUP BY elder_id"),
                {"ids": [elder.id for elder in elders]},
            )
            assert sorted(map(tuple, of_each)) == sorted((elder.id, 1) for elder in elders)

    def wait_until_ready(self) -> None:
        eventually(lambda: _checks(self.port)["status"] == "ready")


def _checks(port: int) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * LIMIT_S)
    connection.request("GET", "/readyz")
    shown = json.loads(connection.getresponse().read())
    connection.close()
    return shown


@pytest.fixture(scope="module")
def running() -> Iterator[Service]:
    with ExitStack() as stack:
        started = stack.enter_context(stores())
        settings = _settings(started)
        services = build_services(settings, role="test", pool_size=OWN_POOL)
        stack.callback(services.close)
        upgrade(services.db.engine)
        port = stack.enter_context(_api(settings))
        town = Neighbourhood(services)
        stack.callback(town.close)
        yield Service(port, services, started, town)


def _settings(stores: Stores, **more: Any) -> Settings:
    return Settings(
        database_url=stores.database_url,
        redis_url=stores.redis_url(),
        auth_secret=SECRET,
        request_timeout_s=int(LIMIT_S),
        **more,
    )


@contextmanager
def _api(settings: Settings) -> Iterator[int]:
    port = free_port()
    with _role("api", settings, PORT=str(port), API_WORKERS="1", API_THREADS=str(THREADS)):
        eventually(lambda: processes.is_ready(port), patience_s=60)
        yield port


@contextmanager
def _role(name: str, settings: Settings, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
    environ = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "AUTH_SECRET": SECRET,
        "REQUEST_TIMEOUT_S": str(settings.request_timeout_s),
        "LOG_LEVEL": "ERROR",
        **more,
    }
    process = subprocess.Popen([sys.executable, "-m", "app", name], cwd=ROOT, env=environ, start_new_session=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


@pytest.fixture
def service(running: Service) -> Service:
    running.wait_until_ready()
    empty_stores(running.services, running.services.db.engine)
    return running


# ---- faults ----


@contextmanager
def redis_killed(stores: Stores) -> Iterator[None]:
    stores.kill_redis()
    try:
        yield
    finally:
        stores.start_redis(empty=True)


@contextmanager
def redis_silent(stores: Stores) -> Iterator[None]:
    process = stores.redis.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@contextmanager
def postgres_killed(stores: Stores) -> Iterator[None]:
    stores.kill_postgres()
    try:
        yield
    finally:
        stores.start_postgres()


@contextmanager
def postgres_silent(stores: Stores) -> Iterator[None]:
    """Stops the parent first, so that it starts no process while the others are stopped."""
    parent = stores.postgres.process
    assert parent is not None
    parent.send_signal(signal.SIGSTOP)
    stopped = processes.running_in(stores.postgres.data, "postgres")
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


# ---- Redis ----


@pytest.mark.parametrize("fault", [redis_killed, redis_silent])
def test_without_redis_presses_are_accepted_in_time_and_accept_works(service: Service, fault: Any) -> None:
    town = service.town
    students = town.students(10, 20, 30, 40, 50)
    before = service.press(town.elder())
    with fault(service.stores):
        first = service.press(town.elder("Hatice Demir"))
        accepted = service.call(students[1], "PUT", f"/tasks/{first.body['id']}/accept")
        together = service.all_press(town.elders(3))
        rejected = service.call(students[0], "PUT", f"/tasks/{before.body['id']}/reject")
    presses = [first, *together]
    assert [answer.status for answer in presses] == [201] * 4
    assert max(answer.took_s for answer in presses) < WITHOUT_REDIS_S
    assert (accepted.status, accepted.body["status"]) == (200, "ASSIGNED")
    assert accepted.took_s < WITHOUT_REDIS_S
    assert rejected.status == 200
    asked = {town.asked(UUID(answer.body["id"])) for answer in together}
    assert asked == {student.id for student in students[2:]}, "the cascade must go on from PostgreSQL"
    with service.services.db.transaction() as conn:
        assert broken_promises(conn) == {}


# ---- PostgreSQL ----


@pytest.mark.parametrize("fault", [postgres_killed, postgres_silent])
def test_without_postgres_requests_get_503_in_time_and_leave_nothing_incomplete(service: Service, fault: Any) -> None:
    town = service.town
    students = town.students(*range(10, 100, 10))
    elders = town.elders(2 * THREADS)
    task_id = service.press(elders[0]).body["id"]
    with fault(service.stores):
        answers = [*service.all_press(elders[1:]), service.call(students[0], "PUT", f"/tasks/{task_id}/accept")]
        ready = _checks(service.port)
    for answer in answers:
        assert (answer.status, answer.kind) == (503, "application/problem+json")
        assert answer.body["code"] in ("database_unavailable", "overloaded")
        assert answer.retry_after is not None and int(answer.retry_after) >= 1
        # One second more, for the client and the connection on a busy machine.
        assert answer.took_s < LIMIT_S + 1
    assert ready["status"] == "unready"
    service.wait_until_ready()
    service.check_complete(*elders)
    assert service.call(students[0], "PUT", f"/tasks/{task_id}/accept").status == 200


def test_an_accept_gets_503_in_time_when_postgres_falls_silent_meanwhile(service: Service) -> None:
    town = service.town
    ahmet, _ = town.students(10, 20)
    elder = town.elder()
    task_id = service.press(elder).body["id"]
    answers: list[Answer] = []
    accepting = threading.Thread(target=lambda: answers.append(service.call(ahmet, "PUT", f"/tasks/{task_id}/accept")))
    blocker = service.stores.connect()
    with blocker.transaction():
        blocker.execute("SELECT FROM tasks WHERE id = %s FOR UPDATE", [task_id])
        accepting.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        eventually(lambda: blocker.execute(waiting).fetchone() == (1,))
        with postgres_silent(service.stores):
            accepting.join()
    blocker.close()
    assert answers[0].status == 503 and answers[0].took_s < LIMIT_S + 1
    service.wait_until_ready()
    service.check_complete(elder)
    again = service.call(ahmet, "PUT", f"/tasks/{task_id}/accept")
    assert (again.status, again.body["status"]) == (200, "ASSIGNED")


def test_a_run_of_lists_whose_postgres_is_killed_is_whole_or_never_was(service: Service, tmp_path: Path) -> None:
    lists = ChangingLists(tmp_path)
    settings = _settings(service.stores, **lists.environ)
    with closing(build_services(settings, role="test", pool_size=OWN_POOL)) as services:
        lists.take(services)
        lists.publish_next()
        statements = mishaps.Step(services.settings, "sql.statement=stop@9999", *WHAT).end().passages
        for point in range(1, POINTS + 1):
            lists.publish_next()
            run = mishaps.Step(services.settings, f"sql.statement=stop@{point * statements // POINTS}", *WHAT)
            with run.standing_still() as is_stopped:
                assert is_stopped
                service.stores.kill_postgres_at_once()
                service.stores.start_postgres()
            run.end()
            lists.check_whole_or_never_was(services)
            lists.take(services)


# ---- slow callers, and the number of connections ----


def test_silent_or_incomplete_requests_hold_a_thread_for_the_request_timeout_at_most(service: Service) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(_dial(service.port)) for _ in range(4 * THREADS)]
        assert service.press(service.town.elder()).took_s < LIMIT_S
        halves = silent[:THREADS]
        for one in halves:
            one.sendall(b"POST /tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{")
        for one in halves:
            one.settimeout(10 * LIMIT_S)
            while one.recv(1000):
                continue
        assert service.press(service.town.elder("Hatice Demir")).status == 201


def test_callers_who_do_not_read_hold_a_thread_for_the_request_timeout_at_most(service: Service) -> None:
    with ExitStack() as stack:
        not_reading = [stack.enter_context(_dial(service.port)) for _ in range(THREADS)]
        for one in not_reading:
            one.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
        time.sleep(0.5)
        began = time.monotonic()
        elder = service.town.elder()
        eventually(lambda: service.press(elder).status == 201)
        assert time.monotonic() - began < 2 * LIMIT_S
        for one in not_reading:
            one.settimeout(10 * LIMIT_S)
            with suppress(ConnectionResetError):
                while one.recv(1_000_000):
                    continue


def test_connections_to_the_stores_are_bounded(service: Service) -> None:
    town = service.town
    town.students(*range(10, 400, 10))
    answers = service.all_press(town.elders(10 * THREADS))
    assert {answer.status for answer in answers} <= {201, 503}
    counted = town.one("SELECT count(*) AS many FROM pg_stat_activity WHERE application_name = 'yaninda-api'")
    assert 1 <= counted.many <= 2 * THREADS, "deeds have connections of their own"
    of_this_test = OWN_POOL + 1
    assert len(town.redis.client_list()) <= THREADS + of_this_test


def _dial(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)


# ---- a stopped matcher ----


def test_a_stopped_matcher_shows_in_readyz_and_in_metrics(service: Service) -> None:
    town = service.town
    town.students(10, 20)
    metrics_port = free_port()
    with _role("matcher", service.services.settings, MATCHER_METRICS_PORT=str(metrics_port)) as matcher:
        eventually(lambda: _listens(metrics_port))
        assert (_metric(service.port, "yaninda_due_backlog"), _checks(service.port)["status"]) == (0, "ready")
        matcher.send_signal(signal.SIGSTOP)
        try:
            task_id = UUID(service.press(town.elder()).body["id"])
            town.age(task_id, OFFER_S + LATE_S)
            shown = _checks(service.port)
            assert (shown["status"], shown["checks"]["matcher"]) == ("degraded", "failed")
            eventually(lambda: _metric(service.port, "yaninda_due_backlog") == 1)
            assert _metric(service.port, "yaninda_due_longest_seconds") >= LATE_S
        finally:
            matcher.send_signal(signal.SIGCONT)
        service.wait_until_ready()
        assert len(town.asked_in_order(task_id)) == 2
        for port in (service.port, metrics_port):
            eventually(lambda port=port: _metric(port, "yaninda_due_backlog") == 0)
        eventually(lambda: _metric(metrics_port, "yaninda_offer_lateness_seconds_count") == 1)
        assert _metric(metrics_port, 'yaninda_offer_lateness_seconds_bucket{le="60.0"}') == 0


def _listens(port: int) -> bool:
    with suppress(OSError):
        _dial(port).close()
        return True
    return False


def _metric(port: int, name: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * LIMIT_S)
    connection.request("GET", "/metrics")
    shown = connection.getresponse().read().decode()
    connection.close()
    return next(float(line.rpartition(" ")[2]) for line in shown.splitlines() if line.startswith(name + " "))
