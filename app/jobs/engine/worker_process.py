"""The engine's end of a worker process."""

import contextlib
import os
import shutil
import signal
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import gettempdir
from threading import Thread
from typing import Any

from app.jobs.engine.frames import FrameReader, pack
from app.jobs.engine.tail import Tail
from app.jobs.engine.task import TaskType
from app.jobs.engine.task_try import TaskTry
from app.jobs.engine.worker import WorkerOptions, run_worker

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_READ_BYTES = 1024 * 1024
REAP_S = 5.0


@dataclass(frozen=True)
class Killed:
    """Why the engine killed a worker."""

    reason: str
    culprit: str | None = None
    """The task that is to blame; None if any of them may be."""


class WorkerProcess:
    def __init__(self, context: ForkServerContext, task_type: TaskType, options: WorkerOptions) -> None:
        self.name = options.name
        self._folder_prefix = options.folder_prefix
        self.task_type = task_type
        self.threads = options.threads
        self.running: dict[str, TaskTry] = {}
        self.is_ready = False
        self.is_tainted = False
        """A task failed in it. It is replaced as soon as nothing runs in it."""
        self.is_closed = False
        """Kept free for a suspect."""
        self.lease_until: float | None = None
        self.killed: Killed | None = None
        self.output = Tail()
        self._reader = FrameReader()
        self._to_send: deque[bytes] = deque()
        self.socket, theirs = socket.socketpair()
        self.socket.setblocking(False)
        self.printed, their_output = _pipe()
        with theirs, their_output:
            self.process = context.Process(
                target=run_worker, args=(theirs, their_output, options), name=options.name, daemon=True
            )
            self.process.start()
        os.set_blocking(self.printed.fileno(), False)

    @property
    def pid(self) -> int:
        assert self.process.pid is not None, "it was started"
        return self.process.pid

    @property
    def load(self) -> int:
        return len(self.running)

    def assign(self, attempt: TaskTry) -> None:
        frame = pack({"run": attempt.task.to_dict()})
        attempt.sent_at = datetime.now(UTC)
        attempt.began = time.monotonic() if self.is_ready else None
        self.running[attempt.task.id] = attempt
        self._to_send.append(frame)
        self.flush()

    def extend_lease(self, until: float) -> None:
        # A worker that the kernel has ended stays ended, also if the engine has not heard of it yet.
        if not self.lease_is_over:
            self.lease_until = until
            self.send({"lease": until})

    @property
    def lease_is_over(self) -> bool:
        return self.lease_until is not None and time.monotonic() >= self.lease_until

    def became_ready(self) -> None:
        self.is_ready = True
        for attempt in self.running.values():
            attempt.began = time.monotonic()

    def send(self, message: Mapping[str, Any]) -> None:
        self._to_send.append(pack(message))
        self.flush()

    def flush(self) -> bool:
        """True if everything was sent. A worker that does not read makes nobody wait."""
        while self._to_send:
            try:
                sent = self.socket.send(self._to_send[0])
            except BlockingIOError:
                return False
            except OSError:
                # It is gone; the end of its socket says so to whoever reads.
                self._to_send.clear()
                return True
            rest = self._to_send.popleft()[sent:]
            if rest:
                self._to_send.appendleft(rest)
        return True

    @property
    def is_behind(self) -> bool:
        return bool(self._to_send)

    @property
    def has_said_more(self) -> bool:
        """Also true for the end of what it says."""
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def receive(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Raises `EOFError` when the process is gone, and `BrokenFrame`."""
        try:
            received = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            raise EOFError
        yield from self._reader.feed(received)

    def read_output(self) -> bool:
        """What its scripts print past Python's own streams. False when nothing more can come."""
        try:
            printed = os.read(self.printed.fileno(), _READ_BYTES)
        except BlockingIOError:
            return True
        self.output.write(printed)
        return bool(printed)

    def memory_bytes(self) -> int:
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()
        except OSError:
            return 0
        return int(pages[1]) * PAGE_BYTES if len(pages) > 1 else 0

    def kill(self, why: Killed | None = None) -> None:
        """Ends the process and the programs that its scripts have started."""
        self.killed = self.killed or why
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def end(self) -> str:
        """Cleans up after the process and tells what ended it."""
        self.kill()
        self.process.join(REAP_S)
        # Once: a program that has left its group may print without end. The pipe holds less than one reading.
        if self.printed.poll():
            self._read_rest()
        self.socket.close()
        self.printed.close()
        # In a thread, because the pool must not wait for a disk.
        Thread(target=self._remove_folders, name="job-folders", daemon=True).start()
        return self.killed.reason if self.killed else _explain_exit(self.process.exitcode)

    def _remove_folders(self) -> None:
        """What a script had written as artifacts when its worker was killed."""
        for folder in Path(gettempdir()).glob(f"{self._folder_prefix}*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _read_rest(self) -> None:
        with contextlib.suppress(OSError):
            self.read_output()


def _pipe() -> tuple[Connection, Connection]:
    reading, writing = os.pipe()
    return Connection(reading, writable=False), Connection(writing, readable=False)


def _explain_exit(exit_code: int | None) -> str:
    match exit_code:
        case None:
            return "its worker stopped answering"
        case code if code == -signal.SIGKILL:
            return "its worker was killed (SIGKILL), perhaps because the machine ran out of memory"
        case code if code < 0:
            return f"its worker crashed ({signal.Signals(-code).name})"
        case code:
            return f"its worker ended with exit code {code}"
