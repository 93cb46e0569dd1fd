"""A script for the engine, whose deed is a parameter: what good and bad scripts do."""

import ctypes
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from app.jobs.engine.execution_context import ExecutionContext

P = dict[str, Any]


def answer(params: P, context: ExecutionContext) -> Any:
    return {"value": params.get("value"), "task_id": context.task_id, "worker_id": context.worker_id}


def sleep(params: P, context: ExecutionContext) -> Any:
    time.sleep(params["s"])
    return answer(params, context)


def wait_for_file(params: P, context: ExecutionContext) -> Any:
    """Tells by one file that it runs, and goes on when another exists. Each run leaves a line."""
    with Path(params["began"]).open("a") as began:
        began.write(f"{os.getpid()}\n")
    while not Path(params["go_on"]).exists():
        time.sleep(0.005)
    return answer(params, context)


def wait_for_cancel(params: P, context: ExecutionContext) -> Any:
    Path(params["began"]).touch()
    while not context.cancelled:
        time.sleep(0.005)
    return "stopped"


def raise_when_cancelled(params: P, context: ExecutionContext) -> Any:
    wait_for_cancel(params, context)
    raise InterruptedError("cancelled")


def exit_process(params: P, _context: ExecutionContext) -> Any:
    os._exit(params.get("code", 3))


def segfault(_params: P, _context: ExecutionContext) -> Any:
    ctypes.string_at(0)


def stuck_in_c(params: P, _context: ExecutionContext) -> Any:
    """Keeps the interpreter: no other thread of the process runs."""
    if "began" in params:
        Path(params["began"]).touch()
    re.match(r"(a+)+$", "a" * 64 + "b")


def stop_timers(params: P, _context: ExecutionContext) -> Any:
    """As a library does whose time limit has ended."""
    signal.alarm(0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    Path(params["began"]).touch()


def stuck_and_deaf(_params: P, _context: ExecutionContext) -> Any:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            continue


def eat_memory(params: P, _context: ExecutionContext) -> Any:
    eaten = [b"x" * 1_000_000 for _ in range(params["megabytes"])]
    time.sleep(params.get("s", 60))
    return len(eaten)


def print_much(params: P, _context: ExecutionContext) -> Any:
    line = "ğüşiöç" * 100 + "\n"
    for _ in range(params["megabytes"]):
        for _ in range(1_000_000 // len(line)):
            sys.stdout.write(line)
    print("the end")


def print_from_c(params: P, _context: ExecutionContext) -> Any:
    for _ in range(params["megabytes"]):
        os.write(1, b"x" * 1_000_000)
    subprocess.run(["echo", "the end"], check=True)


def print_and(params: P, context: ExecutionContext) -> Any:
    print(params["text"])
    return DEEDS[params["then"]](params, context)


def return_set(_params: P, _context: ExecutionContext) -> Any:
    return {1, 2}


def return_nan(_params: P, _context: ExecutionContext) -> Any:
    return float("nan")


def return_half_a_pair(_params: P, _context: ExecutionContext) -> Any:
    return {"name": "\ud800"}


def return_nested(params: P, _context: ExecutionContext) -> Any:
    nested: list[Any] = []
    for _ in range(params["levels"] - 1):
        nested = [nested]
    return nested


def return_much(_params: P, _context: ExecutionContext) -> Any:
    return "x" * 2_000_000


def fork(_params: P, _context: ExecutionContext) -> Any:
    return os.fork()


def fork_unseen(_params: P, _context: ExecutionContext) -> Any:
    """Past Python's own fork; the copy goes on with the script and tries to answer as well."""
    return "copy" if ctypes.CDLL(None).fork() == 0 else "original"


def start_program(params: P, _context: ExecutionContext) -> Any:
    child = subprocess.Popen(["sleep", "600"])
    Path(params["pid_file"]).write_text(str(child.pid))
    os._exit(1)


def raise_error(params: P, _context: ExecutionContext) -> Any:
    raise ValueError(params.get("text", "does not work"))


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raise_speechless(_params: P, _context: ExecutionContext) -> Any:
    raise Speechless


def close_streams_and_raise(_params: P, _context: ExecutionContext) -> Any:
    sys.stdout.close()
    sys.stderr.close()
    raise ValueError("into no stream")


def raise_exit(_params: P, _context: ExecutionContext) -> Any:
    sys.exit(5)


def fail_times(params: P, context: ExecutionContext) -> Any:
    """Fails until it has been tried often enough; the file counts."""
    with Path(params["file"]).open("a+") as tries:
        tries.write("x")
        number = tries.tell()
    if number <= params["times"]:
        raise ValueError(f"try {number}")
    return {"tries": number, **answer(params, context)}


def crash_times(params: P, context: ExecutionContext) -> Any:
    try:
        return fail_times(params, context)
    except ValueError:
        os._exit(3)


def write_into_socket(_params: P, _context: ExecutionContext) -> Any:
    for fd in range(3, 64):
        try:
            os.write(fd, b"\xff" * 64)
        except OSError:
            continue
    time.sleep(60)


def report_progress(params: P, context: ExecutionContext) -> Any:
    for done in range(params["steps"]):
        context.progress(done + 1, params["steps"], "çalışıyor")
    return "done"


def report_and_wait(params: P, context: ExecutionContext) -> Any:
    with Path(params["began"]).open("a") as began:
        began.write(f"{os.getpid()}\n")
    while True:
        context.progress(1)
        time.sleep(0.05)


def report_odd_progress(params: P, context: ExecutionContext) -> Any:
    context.progress(params["done"], params.get("total"), params.get("note", ""))
    return "done"


def report_decimal_progress(_params: P, context: ExecutionContext) -> Any:
    context.progress(Decimal("2.5"), 10**5000, Path("note"))  # type: ignore[arg-type]
    return "done"


def leave_artifacts(params: P, context: ExecutionContext) -> Any:
    for name, size in params["files"].items():
        context.artifact(name).write_bytes(b"x" * size)
    return "left"


def leave_unreadable_artifact(_params: P, context: ExecutionContext) -> Any:
    context.artifact("memory")
    context.artifacts["memory"] = Path("/proc/self/mem")


def break_artifacts(_params: P, context: ExecutionContext) -> Any:
    context.artifacts["file"] = None  # type: ignore[assignment]


def die_with_artifact(params: P, context: ExecutionContext) -> Any:
    path = context.artifact("half")
    path.write_text("half")
    Path(params["path_file"]).write_text(str(path))
    os._exit(3)


def promise_artifact(_params: P, context: ExecutionContext) -> Any:
    context.artifact("never.txt")


def escape_artifact(params: P, context: ExecutionContext) -> Any:
    return str(context.artifact(params["file_name"]))


def leave_state(_params: P, _context: ExecutionContext) -> Any:
    """A number that only grows if a worker is used again."""
    threading.leftover = getattr(threading, "leftover", 0) + 1  # type: ignore[attr-defined]
    return threading.leftover  # type: ignore[attr-defined]


def leave_thread(params: P, context: ExecutionContext) -> Any:
    """It goes on when the script has returned."""
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return leave_state(params, context)


def replace_streams(params: P, context: ExecutionContext) -> Any:
    sys.stdout = sys.stderr = io.StringIO()
    return leave_state(params, context)


def leave_folder(params: P, context: ExecutionContext) -> Any:
    os.chdir("/")
    return leave_state(params, context)


def forget_own_module(_params: P, _context: ExecutionContext) -> Any:
    del sys.modules[__name__]
    return "forgotten"


def die_and_leave_copy(params: P, _context: ExecutionContext) -> Any:
    """The copy keeps the socket of the worker open, and has left the group that is killed."""
    c = ctypes.CDLL(None)
    if (copy := c.fork()) == 0:
        c.setsid()
        c.sleep(60)
        c._exit(0)
    Path(params["pid_file"]).write_text(str(copy))
    time.sleep(0.1)
    os._exit(3)


def leave_floods(params: P, _context: ExecutionContext) -> Any:
    """Programs that have left the group and print without end."""
    floods = [subprocess.Popen(["yes"], start_new_session=True) for _ in range(4)]
    Path(params["pid_file"]).write_text(" ".join(str(flood.pid) for flood in floods))
    raise ValueError("while they print")


def leave_state_and_fail(params: P, context: ExecutionContext) -> Any:
    leave_state(params, context)
    raise ValueError("left something behind")


DEEDS = {
    name: deed
    for name, deed in list(globals().items())
    if callable(deed) and getattr(deed, "__module__", "") == __name__
}


def run(params: P, context: ExecutionContext) -> Any:
    return DEEDS[params["deed"]](params, context)
