"""Starts all roles as an operator does, and calls them over HTTP."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from machine import processes

from app.settings.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
Found = TypeVar("Found")


def eventually(look: Callable[[], Found | None], patience_s: float = 60) -> Found:
    """Waits until `look` returns a true value, and returns it. Fails after `patience_s`."""
    give_up = time.monotonic() + patience_s
    while time.monotonic() < give_up:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"the condition was not met within {patience_s} s")


@dataclass
class Phone:
    """An HTTP client with the token of one user."""

    port: int
    user_id: int
    token: str

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        status, raw = self.ask(method, path, body)
        return status, json.loads(raw) if raw else None

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {self.token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)) as connection:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def offer(self) -> dict[str, Any] | None:
        return self.call("GET", "/me/offer")[1]

    def task(self, task_id: str) -> dict[str, Any]:
        return self.call("GET", f"/tasks/{task_id}")[1]

    def press(self) -> str:
        status, task = self.call("POST", "/tasks", {"note": "Ekmek alır mısın?"})
        assert (status, task["status"]) == (201, "PENDING")
        return task["id"]

    def answer(self, task_id: str, deed: str) -> tuple[int, Any]:
        return self.call("PUT", f"/tasks/{task_id}/{deed}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(settings: Settings, **more: str) -> Iterator[int]:
    """Runs a copy in the background; yields its port. At the end the copy must drain and exit with 0."""
    port = free_port()
    environ = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "AUTH_SECRET": settings.auth_secret or "",
        "PORT": str(port),
        **more,
    }
    server = subprocess.Popen([sys.executable, "-m", "app", "serve"], cwd=ROOT, env=environ, start_new_session=True)
    try:
        eventually(lambda: processes.is_ready(port), patience_s=60)
        yield port
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0
