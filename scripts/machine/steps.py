"""Saying what happens, failing with advice, and being stopped without losing track of a child process."""

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


class StepFailed(Exception):
    """A step that did not work, and one sentence on what to do about it."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


class Stopped(Exception):
    """Somebody pressed Ctrl-C or sent SIGTERM."""


class Interrupts:
    """Signals are only counted. An exception out of a handler could lose a store that was just being started."""

    def __init__(self) -> None:
        self.count = 0
        self.hurried: Callable[[], None] | None = None

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1 and self.hurried is not None:
            self.hurried()

    def check(self) -> None:
        if self.count:
            raise Stopped


interrupts = Interrupts()


def say(text: str) -> None:
    # A reader that went away (`scripts/run | head`) must not keep the stores from being stopped.
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
    failing: str,
    advice: str,
    text: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | str = ROOT,
    may_stop: bool = True,
    shown: bool = False,
) -> str:
    """Run a tool to its end and return what it printed; Ctrl-C reaches it only through us."""
    with tempfile.TemporaryFile() as given, tempfile.NamedTemporaryFile() as output:
        given.write(text.encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=None if shown else output,
                stderr=None if shown else subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise StepFailed(f"{failing}: {error}", advice) from None
        wait_for(process, may_stop)
        printed = Path(output.name).read_text(errors="replace")
        if process.returncode != 0:
            details = tail(Path(output.name))
            raise StepFailed(f"{failing} (exit code {process.returncode})\n{details}".rstrip(), advice)
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
    """Run a script; whatever goes wrong ends with one sentence on what to do."""
    try:
        return work()
    except Stopped:
        say("Stopped.")
        return 130
    except StepFailed as failure:
        say(f"FAILED: {failure.what}")
        say(f"What to do: {failure.advice}")
    except PermissionError as error:
        say(f"FAILED: {error}")
        say("What to do: use a folder that this user may write (--dir), or run as the user it belongs to.")
    except OSError as error:
        say(f"FAILED: {error}")
        say("What to do: see whether the disk is full and the folder can be written, then start again.")
    return 1
