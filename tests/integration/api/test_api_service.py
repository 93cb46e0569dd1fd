"""The `api` role: readiness, commands for operators, and a real server that drains."""

import dataclasses
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter
from sqlalchemy import text

from app.api.identities import UserId
from app.api.services import Services
from app.api.tokens import LocalTokens
from app.bootstrap.api import create_app
from app.cli import demo, manage_users, token
from app.db.database import Database
from app.db.watchdog import answer_by
from app.ops.metrics import CALLER_WITHIN_S, MOST_AT_ONCE, serve_metrics
from app.settings.settings import Settings
from tests.conftest import SECRET
from tests.support.api import NOBODY_LISTENS
from tests.support.world import authorization, settle_world


def _ready(services: Services) -> tuple[int, Any]:
    app = create_app(services)
    response = app.test_client().get("/readyz")
    return response.status_code, response.get_json(force=True)


def test_readyz_is_ready_when_all_checks_pass(services: Services):
    checks = {"database": "ok", "migrations": "ok", "redis": "ok", "matcher": "ok"}
    assert _ready(services) == (200, {"status": "ready", "checks": checks})


def test_readyz_is_degraded_without_redis_but_requests_work(services: Services, monkeypatch: pytest.MonkeyPatch):
    settings_without_redis = services.settings.model_copy(update={"redis_url": NOBODY_LISTENS})
    from app.bootstrap.build_services import build_services

    without = build_services(settings_without_redis, role="test", pool_size=4)
    checks = {"database": "ok", "migrations": "ok", "redis": "failed", "matcher": "ok"}
    assert _ready(without) == (200, {"status": "degraded", "checks": checks})
    world = settle_world(without)
    app = create_app(without)
    press = app.test_client().post("/tasks", headers=authorization(world, without, "other_elder"))
    here = app.test_client().put(
        "/me/location", json={"lat": 40.988, "lon": 29.028}, headers=authorization(world, without, "student")
    )
    assert (press.status_code, here.status_code) == (201, 204)
    without.close()


def test_readyz_is_degraded_while_due_tasks_are_not_settled(services: Services):
    world = settle_world(services)
    with services.db.transaction() as conn:
        conn.execute(
            text("UPDATE tasks SET next_step_at = clock_timestamp() - interval '6 s' WHERE id = :id"),
            {"id": world.task_id},
        )
    status, body = _ready(services)
    assert (status, body["status"], body["checks"]["matcher"]) == (200, "degraded", "failed")


def test_readyz_is_unready_with_an_old_schema(services: Services):
    with services.db.transaction() as conn:
        newest = conn.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
        conn.execute(text("UPDATE alembic_version SET version_num = 'older'"))
    try:
        status, body = _ready(services)
    finally:
        with services.db.transaction() as conn:
            conn.execute(text("UPDATE alembic_version SET version_num = :newest"), {"newest": newest})
    assert (status, body["status"], body["checks"]["migrations"]) == (503, "unready", "failed")


def test_readyz_is_unready_without_a_database(services: Services):
    nowhere = Database("postgresql://nobody@127.0.0.1:9/none", pool_size=1, connect_timeout_s=1)
    status, body = _ready(dataclasses.replace(services, db=nowhere))
    nowhere.close()
    assert (status, body["status"], body["checks"]["database"]) == (503, "unready", "failed")


def test_requests_get_503_with_retry_after_without_a_database(services: Services):
    world = settle_world(services)
    nowhere = Database("postgresql://nobody@127.0.0.1:9/none", pool_size=1, connect_timeout_s=1)
    app = create_app(dataclasses.replace(services, db=nowhere))
    response = app.test_client().get("/me", headers=authorization(world, services, "elder"))
    assert response.status_code == 503
    assert response.get_json(force=True)["code"] == "database_unavailable"
    assert "Retry-After" in response.headers
    nowhere.close()


# ---- commands ----


def test_admin_token_is_the_only_output_and_makes_one_admin(
    services: Services, settings: Settings, capsys: pytest.CaptureFixture[str]
):
    assert settings.auth_secret is not None
    holders: set[UserId] = set()
    for _ in range(2):
        assert token.main(settings, ["--admin"]) == 0
        printed = capsys.readouterr()
        assert printed.out == printed.out.strip() + "\n"
        holders.add(LocalTokens(settings.auth_secret).verify(printed.out.strip()))
    assert len(holders) == 1
    with services.db.transaction() as conn:
        assert conn.execute(text("SELECT name, role FROM users")).all() == [("Yönetici", "ADMIN")]


def test_token_is_refused_for_inactive_and_unknown_users(
    services: Services, settings: Settings, capsys: pytest.CaptureFixture[str]
):
    world = settle_world(services)
    assert token.main(settings, [str(world.ids["elder"])]) == 0
    assert capsys.readouterr().out.count(".") == 2
    for nobody in (str(world.ids["deactivated"]), "99999", "0", "99999999999999999999"):
        assert token.main(settings, [nobody]) == 1
        printed = capsys.readouterr()
        assert (printed.out, bool(printed.err)) == ("", True)
    firebase = settings.model_copy(update={"auth_mode": "firebase", "firebase_project_id": "p", "auth_secret": None})
    assert token.main(firebase, ["--admin"]) == 1


def test_users_are_added_and_listed(services: Services, settings: Settings, capsys: pytest.CaptureFixture[str]):
    add = ["add", "--role", "ADMIN", "--name", "Şule Öz", "--firebase-uid", "uid-1"]
    assert manage_users.main(settings, add) == 0
    assert capsys.readouterr().out == "1\n"
    assert manage_users.main(settings, add) == 1
    assert "Firebase uid" in capsys.readouterr().err
    assert manage_users.main(settings, ["add", "--role", "ELDER", "--name", " ", "--phone", "x"]) == 1
    refused = capsys.readouterr().err
    assert "--name" in refused
    assert "--phone" in refused
    assert manage_users.main(settings, ["list"]) == 0
    assert "Şule Öz" in capsys.readouterr().out


def test_demo_is_created_once_with_the_printed_distances(
    services: Services, settings: Settings, capsys: pytest.CaptureFixture[str]
):
    assert demo.main(settings, []) == 0
    first = capsys.readouterr().out
    assert demo.main(settings, []) == 0
    assert capsys.readouterr().out == first
    assert [line.split()[:3] for line in first.splitlines()[1:6]] == [
        ["1", "ADMIN", "Yönetici"],
        ["2", "COORDINATOR", "Zeynep"],
        ["3", "ELDER", "Ayşe"],
        ["4", "ELDER", "Hüseyin"],
        ["5", "STUDENT", "Ahmet"],
    ]
    with services.db.transaction() as conn:
        distances = conn.execute(
            text(
                "SELECT round(ST_Distance(e.home, s.location)) FROM students s, users e"
                " WHERE e.name = 'Ayşe Yılmaz' ORDER BY s.id LIMIT 5"
            )
        ).scalars()
        assert [int(metres) for metres in distances] == [120, 350, 600, 900, 1600]


@pytest.mark.parametrize("command", [token, manage_users, demo], ids=["token", "users", "demo"])
def test_command_without_a_database_names_the_setting(
    settings: Settings, capsys: pytest.CaptureFixture[str], command: Any
):
    nowhere = settings.model_copy(update={"database_url": "postgresql://nobody@127.0.0.1:9/none"})
    argv = {"app.cli.token": ["--admin"], "app.cli.manage_users": ["list"]}.get(command.__name__, [])
    assert command.main(nowhere, argv) == 1
    assert "DATABASE_URL" in capsys.readouterr().err


# ---- the server ----


STARTED_WITHIN_S = 60
"""So long because the machine may be busy with other tests."""


@contextmanager
def running_server(settings: Settings) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = os.environ | {
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "AUTH_SECRET": settings.auth_secret or "",
        "PORT": str(port),
        "DRAIN_S": "10",
        "METRICS_TOKEN": "",
    }
    process = subprocess.Popen([sys.executable, "-m", "app", "api"], env=environ)
    address = f"http://127.0.0.1:{port}"
    try:
        _until(lambda: _get(address + "/readyz", {})[0] == 200, STARTED_WITHIN_S)
        yield process, address
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def server(services: Services) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """For tests that end the server."""
    with running_server(services.settings) as started:
        yield started


@pytest.fixture(scope="module")
def shared_server(database_url: str, redis_url: str) -> Iterator[str]:
    """For tests that leave the server running, because its start takes longer than each of them."""
    with running_server(Settings(database_url=database_url, redis_url=redis_url, auth_secret=SECRET)) as (_, address):
        yield address


def _get(url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def _until(condition: Any, within_s: float = 20) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition was not met within {within_s} s"
        time.sleep(0.02)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_requests_in_progress_are_answered_before_the_role_ends(services: Services, server: Any, stop: signal.Signals):
    process, address = server
    headers = authorization(settle_world(services), services, "elder")
    answers: list[int] = []
    with services.db.engine.connect() as blocker:
        # Each request reads its caller from this table, so all of them wait for the lock.
        blocker.execute(text("LOCK TABLE users IN ACCESS EXCLUSIVE MODE"))
        threads = [threading.Thread(target=lambda: answers.append(_get(address + "/me", headers)[0])) for _ in range(6)]
        for thread in threads:
            thread.start()
        _until(lambda: _waiting_for_locks(services) == 6)
        process.send_signal(stop)
        _until(lambda: _get(address + "/healthz", {})[0] == 0)
        assert answers == []
        blocker.rollback()
    for thread in threads:
        thread.join(timeout=20)
    assert answers == [200] * 6
    assert process.wait(timeout=20) == 0


def test_draining_role_refuses_notifications_on_open_connections(services: Services, server: Any):
    process, address = server
    headers = authorization(settle_world(services), services, "coordinator") | {"Content-Type": "application/json"}
    mail = json.dumps({"notificationType": "EMAIL", "recipient": "ayse@ornek.org", "body": "Merhaba"})
    kept = http.client.HTTPConnection("127.0.0.1", int(address.rpartition(":")[2]), timeout=10)
    before, _ = _submit(kept, mail, headers)
    process.send_signal(signal.SIGTERM)
    _until(lambda: _get(address + "/healthz", {})[0] == 0)
    after, problem = _submit(kept, mail, headers)
    assert (before.status, after.status) == (202, 503)
    assert (problem["code"], after.getheader("Retry-After")) == ("draining", "1")
    assert process.wait(timeout=20) == 0
    with services.db.reading() as conn:
        assert conn.execute(text("SELECT count(*) FROM notifications WHERE recipient LIKE 'ayse%'")).scalar_one() == 1


def _submit(connection: http.client.HTTPConnection, body: str, headers: dict[str, str]) -> tuple[Any, Any]:
    connection.request("POST", "/api/notifications", body, headers)
    response = connection.getresponse()
    return response, json.loads(response.read())


def _waiting_for_locks(services: Services) -> int:
    with services.db.transaction() as conn:
        return conn.execute(
            text(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
        ).scalar_one()


def test_metrics_are_summed_over_all_workers(shared_server: str):
    address = shared_server
    for _ in range(40):
        assert _get(address + "/docs", {})[0] == 200
    metrics = _get(address + "/metrics", {})[1].decode()
    line = next(line for line in metrics.splitlines() if line.startswith("http_requests_total") and "/docs" in line)
    assert float(line.split()[-1]) == 40


def test_unknown_path_is_answered_without_details(shared_server: str):
    status, body = _get(shared_server + "/nowhere", {})
    assert (status, json.loads(body)["code"]) == (404, "route_unknown")


@pytest.fixture
def metrics_port(settings: Settings) -> Iterator[int]:
    """Of a role without an API."""
    registry = CollectorRegistry()
    Counter("offers", "Offers made.", registry=registry).inc()
    server = serve_metrics(settings.model_copy(update={"metrics_token": "m" * 32}), 0, registry)
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_metrics_of_a_role_without_http_need_the_token(metrics_port: int):
    address = f"http://127.0.0.1:{metrics_port}/metrics"
    assert _get(address, {})[0] == 401
    status, body = _get(address, {"Authorization": "Bearer " + "m" * 32})
    assert status == 200
    assert b"offers_total 1.0" in body


def test_silent_callers_do_not_hide_the_metrics_of_a_role(metrics_port: int):
    """A container is healthy only while they answer."""
    address = f"http://127.0.0.1:{metrics_port}/metrics"
    with ExitStack() as stack:
        silent = [stack.enter_context(_half_a_request(metrics_port)) for _ in range(MOST_AT_ONCE - 1)]
        assert _get(address, {})[0] == 401
        assert [one.recv(1) for one in silent] == [b""] * len(silent), "cut off"


def test_callers_of_the_metrics_of_a_role_are_bounded(metrics_port: int):
    with ExitStack() as stack:
        for _ in range(MOST_AT_ONCE):
            stack.enter_context(_half_a_request(metrics_port))
        began = time.monotonic()
        assert stack.enter_context(_half_a_request(metrics_port)).recv(1) == b""
        assert time.monotonic() - began < CALLER_WITHIN_S / 2


def _half_a_request(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=2 * CALLER_WITHIN_S)
    connection.sendall(b"GET /metrics HTTP/1.1\r\n")
    return connection


def test_chunked_body_is_limited(services: Services, shared_server: str):
    port = int(shared_server.rpartition(":")[2])
    headers = authorization(settle_world(services), services, "elder") | {"Content-Type": "application/json"}
    for size, expected in ((10, 400), (100_000, 413)):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        chunks = (b'{"note": "', b"a" * size * 51, b'"}') if size == 10 else iter([b"a" * 1000] * (size // 1000))
        connection.request("POST", "/tasks", body=chunks, headers=headers, encode_chunked=True)
        response = connection.getresponse()
        answer = response.read()
        assert response.status == expected, answer
        connection.close()


BROKEN = {
    "invalid chunks": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "an invalid length": b"Content-Length: abc\r\n\r\n{}",
    "two lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length and chunks": b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": b"Transfer-Encoding: cat\r\n\r\n{}",
    "a header without a name": b": x\r\n\r\n",
    "half a body": b"Content-Length: 20\r\n\r\n{",
}


def test_malformed_requests_are_refused_without_an_internal_error(services: Services, shared_server: str):
    address = shared_server
    token = authorization(settle_world(services), services, "elder")["Authorization"].encode()
    head = b"POST /tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: " + token + b"\r\n"
    for how, rest in BROKEN.items():
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=10) as raw:
            raw.sendall(head + rest)
            raw.shutdown(socket.SHUT_WR)
            answer = raw.recv(100)
        assert answer == b"" or answer.split()[1] in (b"400", b"501"), (how, answer)
    assert _get(address + "/healthz", {})[0] == 200


def test_time_limit_of_a_request_ends_with_the_request(services: Services):
    app = create_app(services)
    app.test_client().get("/me")
    assert answer_by.get() is None
