"""Alembic's entry. `app.cli.migrate` hands over an open connection; tests do the same."""

from alembic import context
from geoalchemy2 import alembic_helpers
from sqlalchemy import Connection, text

import app.all_tables  # noqa: F401  (fills the metadata)
from app.db.schema import metadata


def run(connection: Connection) -> None:
    # A migration that cannot get its lock gives up instead of making every request queue behind it.
    connection.execute(text("SET lock_timeout = '5s'"))
    connection.execute(text("SET statement_timeout = '15min'"))
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_object=alembic_helpers.include_object,
        process_revision_directives=alembic_helpers.writer,
        render_item=alembic_helpers.render_item,
        compare_type=True,
        compare_server_default=False,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run(context.config.attributes["connection"])
