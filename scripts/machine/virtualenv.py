"""The virtual environment beside the code, made from a lock file and remembered by that file's hash."""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from machine import packages
from machine.steps import ROOT, run, say

FOLDER = ROOT / ".venv"
PYTHON = FOLDER / "bin" / "python"
STAMP = FOLDER / "installed-locks.json"

RUNTIME = "requirements.lock"
DEVELOPMENT = "requirements-dev.lock"


def ensure(lock: str) -> None:
    if _is_installed(lock):
        say(f"Python packages of {lock} … already there")
        return
    with _one_at_a_time():
        if _is_installed(lock):
            return
        if not _works():
            _make()
        say(f"Python packages of {lock} … installing into .venv, which takes a minute or two")
        STAMP.unlink(missing_ok=True)
        run(
            [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-input", "--require-hashes", "-r", str(ROOT / lock)],
            failing="pip could not install the packages",
            advice="see that this machine reaches its package index (`pip config list` shows which), then start again.",
        )
        _remember(lock)


def _make() -> None:
    say(f"Virtual environment .venv … making it with Python {sys.version.split()[0]}")
    packages.ensure_venv_module()
    run(
        [sys.executable, "-m", "venv", "--clear", str(FOLDER)],
        failing="the virtual environment could not be made",
        advice=f"see that {ROOT} can be written and has space, delete .venv there, then start again.",
    )


def _works() -> bool:
    try:
        done = subprocess.run([str(PYTHON), "-m", "pip", "--version"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _is_installed(lock: str) -> bool:
    try:
        return PYTHON.exists() and json.loads(STAMP.read_text()).get(lock) == _hash(lock)
    except (OSError, ValueError):
        return False


def _remember(lock: str) -> None:
    # The development lock contains the runtime lock, pin for pin.
    locks = [RUNTIME, DEVELOPMENT] if lock == DEVELOPMENT else [RUNTIME]
    STAMP.write_text(json.dumps({name: _hash(name) for name in locks}))


def _hash(lock: str) -> str:
    return hashlib.sha256((ROOT / lock).read_bytes()).hexdigest()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two copies started together in a fresh clone must not both fill .venv."""
    descriptor = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
