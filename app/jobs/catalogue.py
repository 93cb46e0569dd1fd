"""The scripts that may run: those that the product ships with, and those of the operator in the folder JOBS_DIR.

A script is asked for by its name, never by a path.
"""

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from app.foundation.storable import made_storable
from app.jobs.errors import CatalogueBusy, ScriptBroken, ScriptFolderGone, ScriptUnknown
from app.jobs.script_declaration import Declaration, LoadedScript, check, load
from app.jobs.script_reader import LIMIT_S, check_params, read_declaration

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
SHIPPED = Path(__file__).resolve().parent / "scripts"
READERS = 4
MOST_CHECKS = 4
"""At once. Half of the threads that a process of the API has by default: a script that hangs when it is imported must
not keep all of them."""
_TURN_WAIT_S = 0.5
BROKEN_FOR_S = 60.0
"""A script that was broken is read again after this time, because the reason may lie outside of its file: the machine
was slow, or a module was missing that it imports."""
_FOLDER_GONE = "The folder JOBS_DIR, {}, is gone or cannot be read. Put it back, or restart without JOBS_DIR."


Version = tuple[Path, int, int, int]
"""Of a file: its path, and what changes when it is written or replaced."""


@dataclass(frozen=True)
class CatalogueEntry:
    name: str
    is_shipped: bool
    declaration: Declaration | None = None
    error: str | None = None
    """Why the script cannot be used."""


@dataclass(frozen=True)
class CheckedJob:
    declaration: Declaration
    params: dict[str, Any]


class Catalogue:
    def __init__(
        self,
        folder: Path | None,
        shipped: Path = SHIPPED,
        *,
        reading_limit_s: float = LIMIT_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._reading_limit_s = reading_limit_s
        self._monotonic = monotonic
        self._shipped = shipped
        self._lock = threading.Lock()
        self._checks = threading.Semaphore(MOST_CHECKS)
        self._listing = threading.Semaphore(1)
        self._read: dict[Version, tuple[float, Declaration | ScriptBroken]] = {}
        """With the time until which it holds."""

    def path_of(self, name: str) -> Path:
        """The script to run. Raises `ScriptUnknown` or `ScriptBroken`."""
        if NAME.fullmatch(name) is None:
            raise ScriptUnknown("There is no script with this name.")
        shipped = self._shipped / f"{name}.py"
        if shipped.is_file():
            return shipped
        if self._folder is not None:
            try:
                with _opened(self._folder):
                    pass
            except ScriptFolderGone as error:
                raise ScriptBroken(error.message) from None
            path = self._folder / f"{name}.py"
            if os.path.lexists(path):
                _refuse_unsafe(self._folder, path)
                return path
        raise ScriptUnknown("There is no script with this name.")

    def check(self, name: str, params: Mapping[str, Any], *, are_strings: bool = False) -> CheckedJob:
        """Raises `ScriptUnknown`, `ScriptBroken`, `WrongParams` or `CatalogueBusy`."""
        path = self.path_of(name)
        if self._is_shipped(path):
            script = _loaded(path)
            return CheckedJob(script.declaration, check(script, params, are_strings=are_strings))
        version = _version(path)
        known = self._known(version)
        if isinstance(known, Declaration) and known.takes_anything:
            return CheckedJob(known, check(LoadedScript(known, None), params, are_strings=are_strings))
        with _in_turn(self._checks):
            declared, checked = check_params(path, params, are_strings=are_strings, limit_s=self._reading_limit_s)
        self._remember(version, declared)
        return CheckedJob(declared, checked)

    def entries(self) -> list[CatalogueEntry]:
        """All scripts by name. One that cannot be used is listed with the reason. Raises `CatalogueBusy` or
        `ScriptFolderGone`."""
        names = {path.stem: True for path in _scripts(self._shipped)}
        if self._folder is not None:
            names = {path.stem: False for path in _scripts(self._folder)} | names
        with _in_turn(self._listing), ThreadPoolExecutor(READERS) as readers:
            return list(readers.map(self._entry, sorted(names), [names[name] for name in sorted(names)]))

    def _entry(self, name: str, is_shipped: bool) -> CatalogueEntry:
        try:
            declaration = self.declaration(name)
        except ScriptUnknown:
            problem = "Its name is not made of a-z, 0-9 and _, or it was removed."
            return CatalogueEntry(made_storable(name), is_shipped, error=problem)
        except ScriptBroken as error:
            return CatalogueEntry(name, is_shipped, error=made_storable(error.message))
        return CatalogueEntry(name, is_shipped, declaration)

    def declaration(self, name: str) -> Declaration:
        path = self.path_of(name)
        if self._is_shipped(path):
            return _loaded(path).declaration
        version = _version(path)
        known = self._known(version)
        if known is None:
            try:
                known = read_declaration(path, self._reading_limit_s)
            except ScriptBroken as error:
                known = error
            self._remember(version, known)
        if isinstance(known, ScriptBroken):
            raise ScriptBroken(known.message)
        return known

    def _known(self, version: Version) -> Declaration | ScriptBroken | None:
        with self._lock:
            until, read = self._read.get(version, (0.0, None))
        return read if self._monotonic() < until else None

    def _remember(self, version: Version, read: Declaration | ScriptBroken) -> None:
        until = self._monotonic() + BROKEN_FOR_S if isinstance(read, ScriptBroken) else float("inf")
        with self._lock:
            kept = {key: value for key, value in self._read.items() if key[0] != version[0]}
            self._read = kept | {version: (until, read)}

    def _is_shipped(self, path: Path) -> bool:
        return path.parent == self._shipped


def _version(path: Path) -> Version:
    try:
        found = path.stat()
    except OSError as error:
        raise ScriptBroken(f"It cannot be read ({type(error).__name__}).") from None
    return (path, found.st_ino, found.st_size, found.st_mtime_ns)


@contextmanager
def _in_turn(turn: threading.Semaphore) -> Generator[None]:
    if not turn.acquire(timeout=_TURN_WAIT_S):
        raise CatalogueBusy("Other requests are reading scripts.")
    try:
        yield
    finally:
        turn.release()


def _scripts(folder: Path) -> list[Path]:
    """Files that begin with an underscore or a dot are no scripts."""
    with _opened(folder) as found:
        paths = [folder / entry.name for entry in found]
    return [path for path in paths if path.suffix == ".py" and not path.name.startswith(("_", "."))]


@contextmanager
def _opened(folder: Path) -> Generator[Iterator[os.DirEntry[str]]]:
    try:
        with os.scandir(folder) as entries:
            yield entries
    except OSError:
        raise ScriptFolderGone(_FOLDER_GONE.format(folder)) from None


def _refuse_unsafe(folder: Path, path: Path) -> None:
    """The operator's scripts run with the rights of this service, so nobody else may be able to put one there."""
    try:
        found, real_folder = path.lstat(), folder.resolve(strict=True)
        if not stat.S_ISREG(found.st_mode) or path.resolve(strict=True).parent != real_folder:
            raise ScriptBroken("It is not a regular file in the folder JOBS_DIR itself.")
        if found.st_mode & stat.S_IWOTH or real_folder.stat().st_mode & stat.S_IWOTH:
            raise ScriptBroken("Everybody may write to it or to the folder JOBS_DIR; take that right away (chmod o-w).")
        if not os.access(path, os.R_OK):
            raise ScriptBroken("It cannot be read by the user that runs this service.")
    except OSError as error:
        raise ScriptBroken(f"It cannot be read ({type(error).__name__}).") from None


@cache
def _loaded(path: Path) -> LoadedScript:
    """Shipped scripts are part of this program, so they are imported here."""
    return load(path)
