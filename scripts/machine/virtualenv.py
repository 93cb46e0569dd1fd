"""The virtual environment in `.venv`, installed from a lock file. A stamp file holds the hash of that lock file and of
what compiles the libraries."""

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
COMPILE_LIBRARIES = ROOT / "scripts" / "machine" / "compile_libraries.py"

DISTRIBUTION = "/usr/bin/python3"
SUITS = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))"

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
            _create()
        say(f"Python packages of {lock} … installing into .venv, which takes a minute or two")
        STAMP.unlink(missing_ok=True)
        run(
            [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-input", "--require-hashes", "-r", str(ROOT / lock)],
            failure="pip could not install the packages",
            advice="check that this machine reaches its package index (see `pip config list`), then start again.",
        )
        run(
            [str(PYTHON), str(COMPILE_LIBRARIES)],
            failure="the packages could not be compiled",
            advice=f"check that {FOLDER} can be written and has space, delete it, then start again.",
        )
        _write_stamp(lock)


def _create() -> None:
    python = fastest_python()
    say(f"Virtual environment .venv … creating it with {python}")
    if python == sys.executable:
        packages.ensure_venv_module()
    run(
        [python, "-m", "venv", "--clear", str(FOLDER)],
        failure="the virtual environment could not be created",
        advice=f"check that {ROOT} can be written and has space, delete .venv there, then start again.",
    )


def fastest_python(distribution: str = DISTRIBUTION) -> str:
    """The distribution's Python, if it is new enough and makes virtual environments. It was optimized with profiles of
    programs, so that it takes a quarter less processor time than one that a version manager has compiled."""
    try:
        done = subprocess.run([distribution, "-I", "-c", SUITS], capture_output=True, check=False)
    except OSError:
        return sys.executable
    return distribution if done.returncode == 0 else sys.executable


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


def _write_stamp(lock: str) -> None:
    # The development lock contains all pins of the runtime lock.
    locks = [RUNTIME, DEVELOPMENT] if lock == DEVELOPMENT else [RUNTIME]
    STAMP.write_text(json.dumps({name: _hash(name) for name in locks}))


def _hash(lock: str) -> str:
    return hashlib.sha256((ROOT / lock).read_bytes() + COMPILE_LIBRARIES.read_bytes()).hexdigest()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two copies that start together in a new clone must not install into .venv at the same time."""
    descriptor = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
