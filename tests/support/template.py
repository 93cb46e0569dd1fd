"""A migrated template database, made once for each version of the code and copied for every worker."""

import hashlib
from pathlib import Path

from sqlalchemy import URL, Connection, create_engine, text

from app.cli.migrate import upgrade

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "yaninda_template_"
ONE_AT_A_TIME = 7_261_946_204
"""Key of the advisory lock under which a template is made, copied or dropped. The number is arbitrary."""


def copy(maintenance: Connection, server: URL, name: str) -> None:
    template = f"{PREFIX}{_hash_of_the_code()}"
    maintenance.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ONE_AT_A_TIME})
    try:
        if not _exists(maintenance, template):
            _make(maintenance, server, template)
        _create(maintenance, name, template)
    finally:
        maintenance.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": ONE_AT_A_TIME})


def _make(maintenance: Connection, server: URL, template: str) -> None:
    """Migrates under another name first, so that an interrupted migration never counts as a template."""
    for outdated in _named(maintenance, PREFIX):
        maintenance.execute(text(f'DROP DATABASE "{outdated}" WITH (FORCE)'))
    unfinished = f"{PREFIX}unfinished"
    _create(maintenance, unfinished, "template0")
    engine = create_engine(server.set(database=unfinished))
    upgrade(engine)
    engine.dispose()
    maintenance.execute(text(f'ALTER DATABASE "{unfinished}" RENAME TO "{template}"'))


def _create(maintenance: Connection, name: str, template: str) -> None:
    # To copy files is faster than to log pages, and a test server needs no log for recovery.
    maintenance.execute(text(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy'))


def _exists(maintenance: Connection, name: str) -> bool:
    return name in _named(maintenance, name)


def _named(maintenance: Connection, prefix: str) -> list[str]:
    found = maintenance.execute(
        text("SELECT datname FROM pg_database WHERE starts_with(datname, :prefix)"), {"prefix": prefix}
    )
    return [row.datname for row in found]


def _hash_of_the_code() -> str:
    """Covers all code that a migration may use; to read it takes 20 ms."""
    digest = hashlib.sha256()
    for path in sorted([*ROOT.glob("migrations/**/*.py"), *ROOT.glob("app/**/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
