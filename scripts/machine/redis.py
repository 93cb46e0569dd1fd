"""A private Redis in a folder of its own, listening on 127.0.0.1 only."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from machine import processes
from machine.account import Account
from machine.postgres import CLEAN_ENVIRONMENT
from machine.steps import SetupFailed, interrupts, say, tail

ADVICE = "read the log that is named above; you may delete the folder, because all data of Redis can be rebuilt."
SHUTDOWN = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))

CONFIGURATION = """\
bind 127.0.0.1
protected-mode yes
port {port}
requirepass {password}
dir "{folder}"
databases {databases}
appendonly {appendonly}
appendfsync everysec
aof-load-truncated yes
save ""
maxmemory-policy noeviction
daemonize no
pidfile ""
logfile ""
"""


def server() -> str | None:
    return shutil.which("redis-server", path=f"{os.environ.get('PATH', '')}:{os.defpath}:/usr/sbin:/usr/local/bin")


@dataclass
class Redis:
    folder: Path
    account: Account
    log: Path
    durable: bool = True
    databases: int = 16
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def configuration(self) -> Path:
        return self.folder / "redis.conf"

    def start(self, port: int, password: str) -> None:
        self.account.folder(self.folder)
        self.end_leftovers()
        self._write_configuration(port, password)
        self._spawn()
        if not self._wait_until_ready(port, password):
            self._move_broken_files()
            self._spawn()
            if not self._wait_until_ready(port, password):
                raise SetupFailed(f"Redis did not start; {self.log} ends with\n{tail(self.log)}", ADVICE)

    def start_again(self) -> None:
        self.end_leftovers()
        self._spawn()

    def stop(self) -> None:
        if self.process is not None:
            processes.end(self.process, SHUTDOWN)
            self.process = None
        self.end_leftovers()

    def end_leftovers(self) -> None:
        if pids := processes.running_in(self.folder, "redis-server"):
            say("Redis is still running from a start that was killed: stopping it first")
            processes.end_strangers(pids, SHUTDOWN)

    def _spawn(self) -> None:
        command = [*self.account.prefix, str(server()), str(self.configuration)]
        self.process = processes.spawn(command, env=CLEAN_ENVIRONMENT, cwd="/", log=self.log)

    def _write_configuration(self, port: int, password: str) -> None:
        folder = str(self.folder).replace("\\", "\\\\").replace('"', '\\"')
        self.configuration.touch(mode=0o600)
        self.account.own(self.configuration, 0o600)
        self.configuration.write_text(
            CONFIGURATION.format(
                port=port,
                password=password,
                folder=folder,
                databases=self.databases,
                appendonly="yes" if self.durable else "no",
            )
        )

    def _wait_until_ready(self, port: int, password: str, patience_s: float = 120.0) -> bool:
        assert self.process is not None
        until = time.monotonic() + patience_s
        while not _answers(port, password):
            interrupts.check()
            if self.process.poll() is not None:
                return False
            if time.monotonic() > until:
                raise SetupFailed(f"Redis did not answer; {self.log} ends with\n{tail(self.log)}", ADVICE)
            time.sleep(0.02)
        return True

    def _move_broken_files(self) -> None:
        """Everything in Redis is rebuilt from PostgreSQL, so an unreadable file must not stop the service."""
        broken = [path for path in self.folder.iterdir() if path.name.startswith(("appendonly", "dump.rdb"))]
        if not broken:
            return
        folder = self.account.folder(self.folder / f"broken-{int(time.time())}")
        say(f"Redis cannot read its file: moving it to {folder}; the data is rebuilt from PostgreSQL")
        for path in broken:
            path.rename(folder / path.name)


def _answers(port: int, password: str) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
        connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
        reply = b""
        while reply.count(b"\r\n") < 2 and (part := connection.recv(200)):
            reply += part
        return reply == b"+OK\r\n+PONG\r\n"
    return False
