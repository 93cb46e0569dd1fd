"""Shared by the commands that are not roles: a database connection, and error messages that say what to do."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import sqlalchemy.exc

from app.bootstrap.open_database import open_database
from app.db.database import Database, DatabaseUnavailable
from app.db.witness import witnessed_by
from app.delivery.contract import OPERATOR, WitnessedDeed
from app.foundation.errors import AppError
from app.settings.settings import Settings

UNDEFINED_TABLE = "42P01"


class CommandFailed(Exception):
    """Ends a command; the message is for the operator."""


@contextmanager
def command_database(settings: Settings, command: str) -> Generator[Database]:
    """What the command changes is in the audit trail."""
    db = open_database(settings, command)
    deed = WitnessedDeed(OPERATOR, OPERATOR, command, "", {}, only_changes=True)
    try:
        with command_errors(), witnessed_by(deed):
            yield db
    finally:
        db.close()


@contextmanager
def command_errors() -> Generator[None]:
    """Translates errors into messages for the operator."""
    try:
        yield
    except DatabaseUnavailable:
        raise CommandFailed("The database does not answer. Is it running, and is DATABASE_URL right?") from None
    except AppError as error:
        raise CommandFailed(error.message) from None
    except sqlalchemy.exc.ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) != UNDEFINED_TABLE:
            raise
        raise CommandFailed("The database has no tables yet. Run `migrate` first.") from None


def fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[str(cell) for cell in row] for row in [titles, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
