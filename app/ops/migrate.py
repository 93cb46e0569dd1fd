"""`python -m app migrate`: brings the database to the newest schema, or to a given revision.

The newest schema comes with what the product ships: plans, their words, and the profiles they name.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from app.db import Database
from app.delivery.plans import shipped
from app.settings import Settings

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"
# Two copies that start together migrate one after the other. The number is arbitrary, and ours.
ADVISORY_LOCK = 7_261_946_203


def alembic_config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def head_revision() -> str:
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert head is not None, "the migrations folder is part of the application"
    return head


def current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def upgrade(engine: Engine, revision: str = "head") -> None:
    with engine.connect() as connection:
        connection.execute(text("SET lock_timeout = 0"))
        connection.execute(text("SET statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
        connection.commit()
        try:
            command.upgrade(alembic_config(connection), revision)
            if current_revision(connection) == head_revision():
                shipped.install(connection)
                connection.commit()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": ADVISORY_LOCK})
            connection.commit()


def main(settings: Settings, argv: list[str]) -> int:
    revision = argv[0] if argv else "head"
    database = Database(settings.database_url, application_name="yaninda-migrate", pool_size=1)
    try:
        with database.engine.connect() as connection:
            before = current_revision(connection)
        upgrade(database.engine, revision)
        with database.engine.connect() as connection:
            after = current_revision(connection)
    finally:
        database.close()
    print(f"Database is at {after}." if before == after else f"Database went from {before or 'empty'} to {after}.")
    return 0
