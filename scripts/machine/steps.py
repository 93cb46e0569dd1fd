"""Shared by all scripts: progress output, failures with advice, and stopping without leaving a child process behind."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]


class SetupFailed(Exception):
    """An operation of a script has failed. `advice` is one sentence that says what to do."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


class Stopped(Exception):
    """The user pressed Ctrl-C, or the script got SIGTERM."""


class Interrupts:
    """Only counts signals. An exception from a handler could interrupt the start of a store, which would keep running
    without being known to the script."""

    def __init__(self) -> None:
        self.count = 0
        self.on_next_signal: Callable[[], None] | None = None

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1 and self.on_next_signal is not None:
            self.on_next_signal()

    def check(self) -> None:
        if self.count:
            raise Stopped


interrupts = Interrupts()


def say(text: str) -> None:
    # The stores must be stopped even if the reader of the output has ended, as in `scripts/run | head`.
    with contextlib.suppress(OSError, ValueError):
        print(f"==> {text}", file=sys.stderr, flush=True)


def tail(log: Path, lines: int = 15) -> str:
    try:
        text = log.read_bytes()[-8000:].decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def run(
    command: Sequence[str],
    *,
    failure: str,
    advice: str,
    text: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | str = ROOT,
    may_stop: bool = True,
    shown: bool = False,
) -> str:
    """Runs a command to its end and returns its output. Its session is its own, so Ctrl-C reaches it only through
    `wait_for`."""
    with tempfile.TemporaryFile() as stdin, tempfile.NamedTemporaryFile() as output:
        stdin.write(text.encode())
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=None if shown else output,
                stderr=None if shown else subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise SetupFailed(f"{failure}: {error}", advice) from None
        wait_for(process, may_stop)
        printed = Path(output.name).read_text(errors="replace")
        if process.returncode != 0:
            details = tail(Path(output.name))
            raise SetupFailed(f"{failure} (exit code {process.returncode})\n{details}".rstrip(), advice)
    return printed


def wait_for(process: "subprocess.Popen[bytes]", may_stop: bool) -> None:
    asked_to_stop = False
    while True:
        try:
            process.wait(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            if interrupts.count and may_stop and not asked_to_stop:
                asked_to_stop = True
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
    interrupts.check()


def main_with_advice(work: Callable[[], int]) -> int:
    """Runs a script and returns its exit code. After a failure it prints one sentence that says what to do."""
    try:
        return work()
    except Stopped:
        say("Stopped.")
        return 130
    except SetupFailed as failure:
        say(f"FAILED: {failure.what}")
        say(f"What to do: {failure.advice}")
    except PermissionError as error:
        say(f"FAILED: {error}")
        say("What to do: use a folder that this user may write (--dir), or run as the user it belongs to.")
    except OSError as error:
        say(f"FAILED: {error}")
        say("What to do: check that the disk is not full and the folder can be written, then start again.")
    return 1
