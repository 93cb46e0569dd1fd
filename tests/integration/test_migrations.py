"""Migrations up and down, and their agreement with the models."""

from collections.abc import Iterator

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from geoalchemy2 import alembic_helpers
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.engine import make_url

import app.all_tables  # noqa: F401  (fills the metadata)
from app.cli.migrate import upgrade
from app.db.database import psycopg_url
from app.db.revisions import alembic_config, current_revision, head_revision
from app.db.schema import metadata
from app.delivery.plans.shipped_plans import PLANS


@pytest.fixture
def empty_database(database_url: str) -> Iterator[Engine]:
    name = make_url(database_url).database
    scratch = f"{name}_scratch"
    server = create_engine(psycopg_url(database_url), isolation_level="AUTOCOMMIT")
    with server.connect() as conn:
        conn.execute(text(f'DROP DATABASE IF EXISTS "{scratch}" WITH (FORCE)'))
        conn.execute(text(f'CREATE DATABASE "{scratch}" TEMPLATE template0'))
    engine = create_engine(make_url(psycopg_url(database_url)).set(database=scratch))
    yield engine
    engine.dispose()
    with server.connect() as conn:
        conn.execute(text(f'DROP DATABASE "{scratch}" WITH (FORCE)'))
    server.dispose()


def test_migrations_have_one_head() -> None:
    assert len(ScriptDirectory.from_config(alembic_config()).get_heads()) == 1


def test_empty_database_is_migrated_up_and_down(empty_database: Engine) -> None:
    upgrade(empty_database)
    with empty_database.connect() as conn:
        assert current_revision(conn) == head_revision()
        command.downgrade(alembic_config(conn), "base")
    left = set(inspect(empty_database).get_table_names()) - {"spatial_ref_sys", "alembic_version"}
    assert left == set()
    upgrade(empty_database)
    with empty_database.connect() as conn:
        assert current_revision(conn) == head_revision()


@pytest.mark.filterwarnings("ignore:Did not recognize type 'point'")
def test_models_and_migrations_agree(empty_database: Engine) -> None:
    upgrade(empty_database)
    with empty_database.connect() as conn:
        context = MigrationContext.configure(
            conn, opts={"compare_type": True, "include_object": alembic_helpers.include_object}
        )
        assert compare_metadata(context, metadata) == []


def test_checks_of_models_and_migrations_agree(empty_database: Engine) -> None:
    """Alembic does not compare check constraints or the expressions of generated columns. So both schemas are built."""
    upgrade(empty_database)
    migrated = _definitions(empty_database)
    with empty_database.begin() as conn:
        conn.execute(text("DROP SCHEMA public CASCADE"))
        conn.execute(text("CREATE SCHEMA public"))
        conn.execute(text("CREATE EXTENSION postgis"))
    metadata.create_all(empty_database)
    assert _definitions(empty_database) == migrated


def _definitions(engine: Engine) -> set[tuple[str, ...]]:
    statement = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'u', 'p')
    UNION ALL SELECT adrelid::regclass::text, a.attname, pg_get_expr(adbin, adrelid)
    FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    UNION ALL SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"""
    with engine.connect() as conn:
        rows = conn.execute(text(statement)).all()
    return {tuple(row) for row in rows if row[0] not in ("spatial_ref_sys", "alembic_version")}


def test_newest_schema_includes_the_shipped_plans(empty_database: Engine) -> None:
    upgrade(empty_database, "0001")
    upgrade(empty_database)
    upgrade(empty_database)
    with empty_database.connect() as conn:
        assert conn.execute(text("SELECT count(*) FROM action_plans")).scalar_one() == len(PLANS)


def test_migration_gives_up_without_its_lock(empty_database: Engine) -> None:
    upgrade(empty_database)
    with empty_database.connect() as conn:
        command.current(alembic_config(conn))
        assert conn.execute(text("SHOW lock_timeout")).scalar_one() == "5s"
        assert conn.execute(text("SHOW statement_timeout")).scalar_one() == "15min"
