"""`python -m app migrate`: migrates the database to the newest schema, or to a given revision.

At the newest schema it also installs the shipped plans, templates and profiles, and adds the coming months. If
MIGRATION_DATABASE_URL is set, it runs as that role, and grants the role of DATABASE_URL what the service needs.
"""

from sqlalchemy import Connection, Engine, make_url, text

from app.bootstrap.open_database import open_database
from app.db.grants import grant_to
from app.db.months import add_months
from app.db.revisions import alembic_config, current_revision, head_revision
from app.delivery import service as delivery
from app.settings.settings import Settings

# The key of a lock, so that two copies that start together migrate one after the other. The number is arbitrary.
ADVISORY_LOCK = 7_261_946_203


def upgrade(engine: Engine, revision: str = "head", *, role: str | None = None) -> None:
    """`role` is the one that the service runs as, if it is not the owner."""
    with engine.connect() as connection:
        connection.execute(text("SET lock_timeout = 0"))
        connection.execute(text("SET statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
        connection.commit()
        try:
            _run_migrations(connection, revision)
            if current_revision(connection) == head_revision():
                delivery.install_shipped(connection)
                if role:
                    grant_to(connection, role)
                connection.commit()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": ADVISORY_LOCK})
            connection.commit()


def _run_migrations(connection: Connection, revision: str) -> None:
    if revision == "head" and current_revision(connection) == head_revision():
        return
    # Imported here because every start of a copy comes here, and most of them have nothing to migrate.
    from alembic import command

    command.upgrade(alembic_config(connection), revision)


def main(settings: Settings, argv: list[str]) -> int:
    revision = argv[0] if argv else "head"
    role = None
    if settings.migration_database_url:
        role = make_url(settings.database_url).username
        owner = make_url(settings.migration_database_url).username
        role = None if role == owner else role
        settings = settings.model_copy(update={"database_url": settings.migration_database_url})
    database = open_database(settings, "migrate")
    try:
        with database.engine.connect() as connection:
            before = current_revision(connection)
        upgrade(database.engine, revision, role=role)
        if revision == "head":
            add_months(database, delivery.MONTHLY)
        with database.engine.connect() as connection:
            after = current_revision(connection)
    finally:
        database.close()
    print(f"Database is at {after}." if before == after else f"Database went from {before or 'empty'} to {after}.")
    return 0
