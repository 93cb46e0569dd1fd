"""`<dir>/env`: the settings of a running copy, for the copy and for other tools (`set -a; . .run/env`).

The upper part is kept between starts, and people may add to it. The lower part holds the settings from the environment
of the last start; they override the upper part.
"""

import ast
import os
import secrets
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from machine.processes import free_port, is_free
from machine.steps import ROOT

KEPT = "# Kept between starts. Settings of your own may be added in this part."
GIVEN = "# From the environment of the last start; written anew by each start."

OWNER = "yaninda"
"""The role that owns the tables and migrates them."""
ROLE = "yaninda_app"
"""The role of the service, which owns nothing."""
DATABASE = "yaninda"


@dataclass(frozen=True)
class Store:
    """Where a private store listens, and its password."""

    port: int
    password: str

    @property
    def database_url(self) -> str:
        return self.url_of(ROLE)

    def url_of(self, role: str) -> str:
        return f"postgresql://{role}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def redis_url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def with_free_port(self) -> "Store":
        return self if is_free(self.port) else Store(free_port(), self.password)


def store_from(url: str | None) -> Store | None:
    try:
        parts = urlsplit(url or "")
        if parts.hostname == "127.0.0.1" and parts.port and parts.password:
            return Store(parts.port, parts.password)
    except ValueError:
        pass
    return None


def new_store() -> Store:
    return Store(free_port(), secrets.token_urlsafe(24))


def names_of_settings() -> list[str]:
    """The variables that the service reads. Its module is parsed, because to import it takes a fifth of a second and
    needs the packages of the service."""
    module = ast.parse((ROOT / "app" / "settings" / "settings.py").read_text())
    (settings,) = (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    fields = (node.target for node in settings.body if isinstance(node, ast.AnnAssign))
    return [field.id.upper() for field in fields if isinstance(field, ast.Name)]


def read(path: Path, *, with_given: bool) -> dict[str, str]:
    values: dict[str, str] = {}
    lines = path.read_text().splitlines() if path.exists() else []
    for line in lines:
        if line.strip() == GIVEN and not with_given:
            break
        name, sign, value = line.strip().removeprefix("export ").partition("=")
        if sign and not name.startswith("#"):
            values[name.strip()] = _unquoted(value)
    return values


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:  # An unclosed quote was written by hand, so the text is taken as it is.
        return value


def write(path: Path, kept: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Replaces the file atomically: after a power cut it is the old or the new one, and complete."""
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    lines = [KEPT, *_assignments(kept), "", GIVEN, *_assignments(given), ""]
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("\n".join(lines))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _assignments(values: Mapping[str, str]) -> Iterable[str]:
    return (f"{name}={shlex.quote(' '.join(value.split()))}" for name, value in sorted(values.items()))
