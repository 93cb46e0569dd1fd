"""A worker process: threads that run scripts, beside one that talks with the engine.

Whatever a script does to this process, the engine is told or notices, so nothing here tries to survive: a wrong frame,
a closed socket or an ended lease end the process, and everything that its scripts have started with it.
"""

import contextlib
import faulthandler
import os
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from app.foundation.parent import end_with_parent
from app.jobs.engine.execution_context import ExecutionContext, JobResources
from app.jobs.engine.executor import PythonExecutor, ScriptEnd, ScriptRefused
from app.jobs.engine.frames import FrameReader, pack
from app.jobs.engine.lease_timer import LeaseTimer
from app.jobs.engine.printed import print_to, thread_output
from app.jobs.engine.result import Result
from app.jobs.engine.tail import Tail
from app.jobs.engine.task import Task

REPORT_EVERY_S = 0.2
"""Progress and output reach the engine this often while a script runs."""
_HOUSE_THREADS = {"database-watchdog"}
"""Belong to the resources of the worker, and not to a script."""


@dataclass(frozen=True)
class WorkerOptions:
    name: str
    threads: int
    artifact_bytes: int
    artifacts_bytes: int
    folder_prefix: str
    """Of this worker only, so that the engine can remove what it leaves when it dies."""
    resources: Callable[[], JobResources] | None = None


@dataclass
class _Run:
    """One task in this process."""

    task: Task
    context: ExecutionContext
    lock: threading.Lock = field(default_factory=threading.Lock)
    tail: Tail = field(default_factory=Tail)
    printed: bool = False
    progress: tuple[int, int | None, str] | None = None

    def write(self, written: bytes) -> None:
        with self.lock:
            self.tail.write(written)
            self.printed = True

    def report(self, done: int, total: int | None, note: str) -> None:
        self.progress = (done, total, note)

    def news(self) -> dict[str, Any]:
        """What the engine has not been told yet."""
        news: dict[str, Any] = {}
        progress, self.progress = self.progress, None
        if progress is not None:
            news["progress"] = progress
        with self.lock:
            if self.printed:
                news["output"] = self.tail.text()
                self.printed = False
        return news


def run_worker(engine: socket.socket, output: Connection, options: WorkerOptions) -> None:
    """The whole life of the process."""
    _leave_the_engines_group()
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    _close_all_but({0, 1, 2, engine.fileno()})
    faulthandler.enable(file=2)
    sys.stdout = sys.stderr = thread_output()
    sys.addaudithook(_refuse_fork)
    Worker(engine, options).run()


def _close_all_but(kept: set[int]) -> None:
    """Among them is a pipe that keeps the fork server alive. When the engine dies the server has to end, because the
    kernel then ends its children: also those that are too busy to notice anything."""
    for file in Path("/proc/self/fd").iterdir():
        if int(file.name) not in kept:
            with contextlib.suppress(OSError):  # The one that listed the folder is closed already.
                os.close(int(file.name))


def _leave_the_engines_group() -> None:
    """A group of its own, so that Ctrl-C in a terminal leaves the decision to the engine, and so that the engine can
    kill the programs that scripts have started."""
    os.setsid()
    end_with_parent(signal.SIGKILL)
    # If memory runs out, the kernel takes a worker and not the engine.
    Path("/proc/self/oom_score_adj").write_text("1000")


def _refuse_fork(event: str, _arguments: Any) -> None:
    """A copy of this process would share the socket and the threads' locks. Programs can be started."""
    if event in ("os.fork", "os.forkpty"):
        raise ScriptRefused("the script forked: a job may start programs (subprocess), but not copies of its worker")


@contextlib.contextmanager
def _or_no_process() -> Generator[None]:
    """If a thread of the worker fails, the process ends: without the thread a task would never end."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            os.write(2, traceback.format_exc().encode())
        os._exit(70)


def _working_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - asked after every task
    except OSError:
        return None


class Worker:
    def __init__(self, engine: socket.socket, options: WorkerOptions) -> None:
        self._engine = engine
        self._options = options
        self._pid = os.getpid()
        self._lease_timer = LeaseTimer()
        self._sending = threading.Lock()
        self._waiting: SimpleQueue[_Run] = SimpleQueue()
        self._runs: dict[str, _Run] = {}
        self._executor = PythonExecutor()
        self._own_threads: set[threading.Thread] = set()
        self._stream = sys.stdout
        self._folder = _working_folder()
        self._resources = cache(options.resources) if options.resources else None

    def run(self) -> None:
        for number in range(self._options.threads):
            threading.Thread(target=self._serve, name=f"thread-{number}", daemon=True).start()
        threading.Thread(target=self._tell_news, name="news", daemon=True).start()
        self._own_threads = {*threading.enumerate()}
        self._send({"event": "ready"})
        self._listen()
        os.killpg(0, signal.SIGKILL)

    def _listen(self) -> None:
        """Until the engine says so or is gone."""
        reader = FrameReader()
        while received := self._engine.recv(65_536):
            messages = [message for message, _ in reader.feed(received)]
            # Before the tasks: after the end of the lease, none may begin. A worker that was slow to start may find an
            # old lease before the newest.
            if leases := [message["lease"] for message in messages if "lease" in message]:
                # The kernel ends this process when the lease does, also if the engine was stopped, or a script keeps
                # every other thread from running.
                self._lease_timer.kill_at(leases[-1])
            for message in messages:
                match message:
                    case {"run": values}:
                        self._take(Task.from_dict(values))
                    case {"cancel": id_} if (run := self._runs.get(id_)) is not None:
                        run.context.cancel.set()
                    case _:
                        # A lease, or a cancellation whose task has just ended.
                        continue

    def _take(self, task: Task) -> None:
        context = ExecutionContext(task.id, self._options.name, folder_prefix=self._options.folder_prefix)
        if self._resources is not None:
            context.resources = self._resources
        run = _Run(task, context)
        context.report_progress = run.report
        self._runs[task.id] = run
        self._waiting.put(run)

    def _serve(self) -> None:
        with _or_no_process():
            while True:
                self._run(self._waiting.get())

    def _run(self, run: _Run) -> None:
        print_to(run.write)
        executed = self._executor.execute(run.task, run.context)
        try:
            executed = self._leave_artifacts(run, executed)
        finally:
            if run.context.folder is not None:
                shutil.rmtree(run.context.folder, ignore_errors=True)
        del self._runs[run.task.id]
        end = {
            "event": "end",
            "result": executed.result.to_dict(),
            "may_retry": executed.may_retry,
            "is_clean": self._is_clean(),
        }
        self._send(end | run.news())

    def _is_clean(self) -> bool:
        """False if the script has left something that the next one would notice."""
        threads = set(threading.enumerate()) - self._own_threads
        return (
            all(thread.name in _HOUSE_THREADS for thread in threads)
            and sys.stdout is sys.stderr is self._stream
            and _working_folder() == self._folder
        )

    def _leave_artifacts(self, run: _Run, executed: ScriptEnd) -> ScriptEnd:
        """A result whose files cannot be kept is a failure, because somebody would look for them."""
        if not executed.result.is_success:
            return executed
        try:
            files = read_artifacts(run.context.artifacts, self._options.artifact_bytes, self._options.artifacts_bytes)
        except ScriptRefused as refused:
            failed = Result.failed(run.task.id, str(refused), executed.result.started_at, executed.result.completed_at)
            return ScriptEnd(failed, may_retry=False)
        for name, content in files.items():
            self._send({"event": "artifact", "task_id": run.task.id, "name": name}, content)
        return executed

    def _tell_news(self) -> None:
        with _or_no_process():
            while True:
                time.sleep(REPORT_EVERY_S)
                for id_, run in list(self._runs.items()):
                    if news := run.news():
                        self._send({"event": "news", "task_id": id_} | news)

    def _send(self, message: Mapping[str, Any], blob: bytes = b"") -> None:
        if os.getpid() != self._pid:
            # A copy of this process, made where Python did not see it, has nothing to say.
            os._exit(70)
        with self._sending:
            self._engine.sendall(pack(message, blob))


def read_artifacts(paths: Mapping[str, Path], each_bytes: int, all_bytes: int) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    left = all_bytes
    for name, path in paths.items():
        if path.is_symlink() or not path.is_file():
            raise ScriptRefused(f"the artifact {name} was not written")
        size = path.stat().st_size
        if size > min(each_bytes, left):
            raise ScriptRefused(
                f"the artifact {name} has {size:,} bytes: {each_bytes:,} for one, {all_bytes:,} for all"
            )
        try:
            files[name] = path.read_bytes()
        except OSError as error:
            raise ScriptRefused(f"the artifact {name} cannot be read ({type(error).__name__})") from None
        left -= size
    return files
