"""Alembic runs this file. `app.cli.migrate` and the tests give it an open connection."""

from alembic import context
from sqlalchemy import Connection, text

import app.all_tables  # noqa: F401  (fills the metadata)
from app.db.revisions import is_compared
from app.db.schema import metadata


def run(connection: Connection) -> None:
    # A migration that waits for a lock makes every later request on the table wait behind it, so it gives up soon.
    connection.execute(text("SET lock_timeout = '5s'"))
    connection.execute(text("SET statement_timeout = '15min'"))
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_object=is_compared,
        compare_type=True,
        compare_server_default=False,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run(context.config.attributes["connection"])
