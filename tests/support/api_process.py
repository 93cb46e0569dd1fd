"""One process of the api, which a module of tests starts once, and raw connections to it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from machine import processes

from tests.conftest import SECRET
from tests.support.serving import ROOT, eventually, free_port

PATIENCE_S = 20


@dataclass(frozen=True)
class Answered:
    status: int
    headers: Message
    body: bytes
    took_s: float

    @property
    def code(self) -> str | None:
        is_problem = self.headers.get("Content-Type") == "application/problem+json"
        return json.loads(self.body)["code"] if is_problem else None


@dataclass
class ApiProcess:
    process: "subprocess.Popen[bytes]"
    port: int

    def connect(self, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
        connection = socket.socket()
        # Small, so that a caller who does not read is noticed after few bytes.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_S)
        connection.bind((source, 0))
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(sent)
        return connection

    def ask(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] | None = None,
        source: str = "127.0.0.1",
    ) -> Answered:
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S, source_address=(source, 0))
        with closing(connection):
            connection.request(method, target, body, dict(headers or {}))
            answer = connection.getresponse()
            return Answered(answer.status, answer.headers, answer.read(), time.monotonic() - began)

    def worker(self) -> int:
        """The id of the process that serves; the other one is its supervisor."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def memory_mb(self) -> float:
        """The most that it ever had."""
        lines = Path(f"/proc/{self.worker()}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


@contextmanager
def running_api(database_url: str, redis_url: str, **settings: str) -> Iterator[ApiProcess]:
    """At the end it must drain and exit with 0."""
    port = free_port()
    environ = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "AUTH_SECRET": SECRET,
        "PORT": str(port),
        "API_WORKERS": "1",
        "LOG_LEVEL": "ERROR",
        **settings,
    }
    process = subprocess.Popen([sys.executable, "-m", "app", "api"], cwd=ROOT, env=environ, start_new_session=True)
    try:
        eventually(lambda: processes.is_ready(port), patience_s=60)
        yield ApiProcess(process, port)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
