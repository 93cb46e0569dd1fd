"""`<dir>/env`: what a running copy needs to know, for itself and for other tools (`set -a; . .run/env`).

The upper part is kept between starts and may be added to by hand. The lower part holds the settings that came from the
environment of the last start; they win over the upper part.
"""

import os
import secrets
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from machine.processes import free_port, is_free

KEPT = "# Kept between starts. Settings of your own may be added in this part."
GIVEN = "# From the environment of the last start; written anew by each start."

ROLE = "yaninda"
DATABASE = "yaninda"


@dataclass(frozen=True)
class Store:
    """Where a private store listens, and its password."""

    port: int
    password: str

    @property
    def database_url(self) -> str:
        return f"postgresql://{ROLE}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

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
    except ValueError:  # A quote that is not closed: a person wrote it, and meant the text as it is.
        return value


def write(path: Path, kept: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Replace the file in one step: a power cut leaves the old one or the new one, never half of one."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    lines = [KEPT, *_assignments(kept), "", GIVEN, *_assignments(given), ""]
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("\n".join(lines))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _assignments(values: Mapping[str, str]) -> Iterable[str]:
    return (f"{name}={shlex.quote(' '.join(value.split()))}" for name, value in sorted(values.items()))
