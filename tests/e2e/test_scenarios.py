"""The three scenarios, over HTTP, against all roles as they run in production, with a short time to answer."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import redis
from sqlalchemy import text

from app.api.tokens import LocalTokens
from app.bootstrap import Services
from app.users import service as users
from app.users.models import LatLon, Role

ROOT = Path(__file__).resolve().parents[2]
HOME = LatLon(40.9870, 29.0280)
Found = TypeVar("Found")


def eventually(look: Callable[[], Found | None], patience_s: float = 30) -> Found:
    """What `look` finds, as soon as it finds something; the test fails when it never does."""
    give_up = time.monotonic() + patience_s
    while time.monotonic() < give_up:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing after {patience_s} s")


@dataclass
class Phone:
    """Somebody with a token."""

    port: int
    user_id: int
    token: str

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        headers = {"Authorization": f"Bearer {self.token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        raw = answer.read()
        connection.close()
        return answer.status, json.loads(raw) if raw else None

    def offer(self) -> dict[str, Any] | None:
        return self.call("GET", "/me/offer")[1]

    def task(self, task_id: str) -> dict[str, Any]:
        return self.call("GET", f"/tasks/{task_id}")[1]

    def press(self) -> str:
        status, task = self.call("POST", "/tasks", {"note": "Ekmek alır mısın?"})
        assert (status, task["status"]) == (201, "PENDING")
        return task["id"]

    def answer(self, task_id: str, word: str) -> tuple[int, Any]:
        return self.call("PUT", f"/tasks/{task_id}/{word}")


@dataclass
class Neighbourhood:
    ayse: Phone
    ahmet: Phone
    berat: Phone
    zeynep: Phone
    services: Services

    def shown_to(self, phone: Phone) -> list[str]:
        """What this person's phone has shown, as the recording channel kept it."""
        with self.services.db.transaction() as conn:
            rows = conn.execute(
                text("SELECT body FROM recorded_pushes WHERE user_id = :id ORDER BY id"), {"id": phone.user_id}
            )
            return [row.body for row in rows]

    def keys(self, task_id: str) -> tuple[list[str], str | None, int]:
        client = redis.Redis.from_url(self.services.settings.redis_url, decode_responses=True)
        pending = f"pending_assignment:{task_id}"
        found = client.lrange(f"task_candidates:{task_id}", 0, -1), client.get(pending), client.pttl(pending)
        client.close()
        return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def offer_ttl_s() -> int:
    return 600


@pytest.fixture
def neighbourhood(services: Services, offer_ttl_s: int) -> Iterator[Neighbourhood]:
    port = free_port()
    settings = services.settings
    environ = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "AUTH_SECRET": settings.auth_secret or "",
        "PORT": str(port),
        "OFFER_TTL_S": str(offer_ttl_s),
    }
    people = _move_in(services)
    server = subprocess.Popen([sys.executable, "-m", "app", "serve"], cwd=ROOT, env=environ, start_new_session=True)
    try:
        tokens = LocalTokens(settings.auth_secret or "")
        phones = {name: Phone(port, user_id, tokens.issue(user_id)) for name, user_id in people.items()}
        eventually(lambda: _ready(port), patience_s=60)
        yield Neighbourhood(**phones, services=services)
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0


def _move_in(services: Services) -> dict[str, int]:
    def user(role: Role, name: str, north: float | None) -> int:
        place = None if north is None else LatLon(HOME.lat + north / 111_000, HOME.lon)
        return users.create_user(conn, users.NewUser(role, name, location=place)).id

    with services.db.transaction() as conn:
        return {
            "ayse": user(Role.ELDER, "Ayşe Yılmaz", 0),
            "ahmet": user(Role.STUDENT, "Ahmet Çelik", 100),
            "berat": user(Role.STUDENT, "Berat Şahin", 300),
            "zeynep": user(Role.COORDINATOR, "Zeynep Koç", None),
        }


def _ready(port: int) -> bool:
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


def test_scenario_a_the_student_accepts(neighbourhood: Neighbourhood) -> None:
    ayse, ahmet, berat = neighbourhood.ayse, neighbourhood.ahmet, neighbourhood.berat
    task_id = ayse.press()
    listed, asked, left_ms = neighbourhood.keys(task_id)
    assert (listed, asked) == ([str(berat.user_id)], str(ahmet.user_id))
    assert 590_000 < left_ms <= 600_001
    assert ahmet.offer() is not None and berat.offer() is None

    assert ahmet.answer(task_id, "accept")[0] == 200
    assert neighbourhood.keys(task_id) == ([], None, -2)
    assert ayse.task(task_id)["status"] == "ASSIGNED"
    assert ayse.task(task_id)["student"]["name"] == "Ahmet Çelik"
    eventually(lambda: "Ahmet yola çıktı!" in neighbourhood.shown_to(ayse))
    assert neighbourhood.shown_to(ahmet) == ["Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var."]
    assert ahmet.answer(task_id, "start")[0] == 200
    status, task = ahmet.answer(task_id, "complete")
    assert (status, task["status"]) == (200, "COMPLETED")
    # The next request goes to Berat: Ahmet has completed one this month.
    assert neighbourhood.keys(ayse.press())[1] == str(berat.user_id)


def test_scenario_b_the_student_rejects(neighbourhood: Neighbourhood) -> None:
    ayse, ahmet, berat = neighbourhood.ayse, neighbourhood.ahmet, neighbourhood.berat
    task_id = ayse.press()
    assert ahmet.answer(task_id, "reject")[0] == 200
    assert neighbourhood.keys(task_id)[:2] == ([], str(berat.user_id))
    assert berat.answer(task_id, "reject")[0] == 200
    assert ayse.task(task_id)["status"] == "TIMED_OUT"
    assert neighbourhood.keys(task_id) == ([], None, -2)
    eventually(lambda: "Maalesef şu an uygun öğrenci bulunamadı." in neighbourhood.shown_to(ayse))
    eventually(lambda: any("Ayşe Yılmaz" in body for body in neighbourhood.shown_to(neighbourhood.zeynep)))
    status, problem = ahmet.answer(task_id, "accept")
    assert (status, problem["code"]) == (409, "offer_rejected")


@pytest.mark.parametrize("offer_ttl_s", [3])
def test_scenario_c_nobody_answers(neighbourhood: Neighbourhood) -> None:
    ayse, ahmet, berat = neighbourhood.ayse, neighbourhood.ahmet, neighbourhood.berat
    task_id = ayse.press()
    assert ahmet.offer() is not None
    eventually(lambda: berat.offer())
    assert ahmet.offer() is None
    status, problem = ahmet.answer(task_id, "accept")
    assert (status, problem["code"]) == (409, "offer_expired")
    eventually(lambda: ayse.task(task_id)["status"] == "TIMED_OUT")
    eventually(lambda: "Maalesef şu an uygun öğrenci bulunamadı." in neighbourhood.shown_to(ayse))
    status, offers = neighbourhood.zeynep.call("GET", f"/tasks/{task_id}/offers")
    assert [(item["studentId"], item["state"]) for item in offers["items"]] == [
        (ahmet.user_id, "EXPIRED"),
        (berat.user_id, "EXPIRED"),
    ]
