"""Migrations up and down, and their agreement with the models."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.engine import make_url

import app.all_tables  # noqa: F401  (fills the metadata)
from app.cli.migrate import upgrade
from app.db.database import Database, psycopg_url
from app.db.revisions import alembic_config, current_revision, head_revision, is_compared
from app.db.schema import metadata
from app.delivery.channels.audit_trail import GENESIS, append, link, verify_audit_trail
from app.delivery.messages.values import NotificationType
from app.delivery.plans.shipped_plans import PLANS
from app.foundation.ids import uuid7
from app.roster.sync.comparison import STORAGE
from tests.support.delivery import notification


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
    assert ScriptDirectory.from_config(alembic_config()).get_heads() == [head_revision()]


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


@pytest.mark.filterwarnings("ignore:Did not recognize type '(point|circle)'")
def test_models_and_migrations_agree(empty_database: Engine) -> None:
    upgrade(empty_database)
    with empty_database.connect() as conn:
        context = MigrationContext.configure(conn, opts={"compare_type": True, "include_object": is_compared})
        assert compare_metadata(context, metadata) == []


def test_checks_of_models_and_migrations_agree(empty_database: Engine) -> None:
    """Alembic does not compare check constraints or the expressions of generated columns. So both schemas are built.
    Partitions are left out: the models do not declare them, and they have the definitions of their table."""
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
    UNION ALL SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod)
    FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped"""
    with engine.connect() as conn:
        rows = conn.execute(text(statement)).all()
        children = conn.execute(text("SELECT oid::regclass::text FROM pg_class WHERE relispartition")).scalars().all()
    return {tuple(row) for row in rows if row[0] not in {"spatial_ref_sys", "alembic_version", *children}}


def test_newest_schema_includes_the_shipped_plans(empty_database: Engine) -> None:
    upgrade(empty_database, "0001")
    upgrade(empty_database)
    upgrade(empty_database)
    with empty_database.connect() as conn:
        assert conn.execute(text("SELECT count(*) FROM action_plans")).scalar_one() == len(PLANS)


def test_lists_from_before_get_the_storage_of_new_ones(empty_database: Engine) -> None:
    upgrade(empty_database, "0007")
    with empty_database.begin() as conn:
        conn.execute(text("CREATE TABLE roster_rows_1 PARTITION OF roster_rows FOR VALUES IN (1)"))
    upgrade(empty_database)
    with empty_database.connect() as conn:
        altered = conn.execute(text("SELECT reloptions FROM pg_class WHERE relname = 'roster_rows_1'")).scalar_one()
    assert altered == STORAGE.replace(" ", "").split(",")


OUTCOMES_BEFORE = (
    "INSERT INTO action_plans (name) VALUES ('of an operator')",
    """
    INSERT INTO action_plan_steps (action_plan_id, step_order, channel_type)
    SELECT id, 7, 'sms' FROM action_plans WHERE key IS NULL OR key IN ('matching.nobody_found', 'matching.offer')
    """,
    "INSERT INTO recipient_profiles (name) VALUES ('in use')",
    "INSERT INTO recipient_profiles (name, retired_at) VALUES ('retired', '2026-03-12T09:00Z')",
    # One route was retired with its profile, the other by itself before that.
    """
    INSERT INTO action_routes (action_plan_id, step_order, recipient_profile_id, channel_type, retired_at)
    SELECT s.action_plan_id, s.step_order, p.id, kind, at
      FROM action_plan_steps s, recipient_profiles p,
           (VALUES ('sms', timestamptz '2026-03-12T09:00:01Z'), ('email', '2026-03-12T08:00Z')) AS r (kind, at)
     WHERE s.step_order = 7 AND p.name = 'retired' AND s.action_plan_id = (SELECT max(id) FROM action_plans)
    """,
    """
    INSERT INTO actions (id, action_plan_id, status, origin, steps, expires_at, finished_at)
    SELECT gen_random_uuid(), 1, status, 'HTTP', '[]', '2026-03-12T09:00Z', now()
      FROM unnest(ARRAY['CANCELLED', 'FAILED']) AS status
    """,
    """
    INSERT INTO dead_letters (id, action_id, channel_type, error_code, error_message, retryable, retry_count)
    SELECT gen_random_uuid(), a.id, 'push', code, '', true, 0
      FROM actions a, unnest(ARRAY['NO_DEVICE', 'HTTP_500']) AS code
    """,
)


def test_plans_routes_and_dead_letters_from_before_have_todays_outcomes(empty_database: Engine) -> None:
    upgrade(empty_database, "0008")
    with empty_database.begin() as conn:
        for plan in PLANS:
            conn.execute(text("INSERT INTO action_plans (key, name) VALUES (:key, '')"), {"key": plan.key})
        for statement in OUTCOMES_BEFORE:
            conn.execute(text(statement))
    upgrade(empty_database)
    with empty_database.connect() as conn:
        steps = conn.execute(
            text(
                "SELECT p.key, s.may_arrive_twice FROM action_plan_steps s JOIN action_plans p"
                " ON p.id = s.action_plan_id WHERE s.step_order = 7"
            )
        )
        assert dict(map(tuple, steps)) == {None: False, "matching.offer": False, "matching.nobody_found": True}
        routes = conn.execute(text("SELECT channel_type, retired_at IS NULL FROM action_routes WHERE step_order = 7"))
        assert dict(map(tuple, routes)) == {"sms": True, "email": False}
        letters = conn.execute(
            text(
                "SELECT a.status, d.error_code, d.status, d.expires_at = a.expires_at"
                " FROM dead_letters d JOIN actions a ON a.id = d.action_id ORDER BY 1, 2"
            )
        )
        assert [tuple(one) for one in letters] == [
            ("CANCELLED", "HTTP_500", "EXPIRED", True),
            ("CANCELLED", "NO_DEVICE", "EXPIRED", True),
            ("FAILED", "HTTP_500", "OPEN", True),
            ("FAILED", "NO_DEVICE", "EXPIRED", True),
        ]
        command.downgrade(alembic_config(conn), "0008")


def test_migration_gives_up_without_its_lock(empty_database: Engine) -> None:
    upgrade(empty_database)
    with empty_database.connect() as conn:
        command.current(alembic_config(conn))
        assert conn.execute(text("SHOW lock_timeout")).scalar_one() == "5s"
        assert conn.execute(text("SHOW statement_timeout")).scalar_one() == "15min"


def test_trail_from_before_there_were_authors_stays_valid(empty_database: Engine) -> None:
    upgrade(empty_database, "0008")
    fields = (uuid7(), "ops", "a", "b", "{}", datetime(2026, 3, 12, 9, 0, tzinfo=UTC))
    with empty_database.begin() as conn:
        conn.execute(
            text(
                "INSERT INTO audit_entries (notification_id, recipient, subject, body, metadata, written_at,"
                " previous_hash, hash) VALUES (:id, 'ops', 'a', 'b', '{}', :at, :genesis, :hash)"
            ),
            {"id": fields[0], "at": fields[-1], "genesis": GENESIS, "hash": link(GENESIS, *fields)},
        )
    upgrade(empty_database)
    db = Database(empty_database.url.render_as_string(hide_password=False), pool_size=1)
    with db.transaction() as conn:
        append(conn, [notification(notification_type=NotificationType.AUDIT)])
    found = verify_audit_trail(db)
    db.close()
    assert (found.count, found.broken_id) == (2, None)


FILL = (
    "INSERT INTO users (id, role, name) VALUES (7, 'ELDER', 'Ayşe Yılmaz')",
    """
    INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, status, due_at,
                               finished_at) VALUES
        ('0197a000-0000-7000-8000-000000000001', 'PUSH', 'user:7', 7, 's', 'b', 'SENT', NULL, now()),
        ('0197a000-0000-7000-8000-000000000002', 'SMS', '+905550000001', NULL, '', 'b', 'ACCEPTED', now(), NULL),
        ('01990000-0000-7000-8000-000000000003', 'PUSH', 'user:7', 7, 's', 'b', 'DEAD', NULL, now()),
        ('ffffffff-ffff-4fff-bfff-000000000004', 'PUSH', 'user:7', 7, 's', 'b', 'SENT', NULL, now())
    """,
    """
    INSERT INTO notification_attempts (notification_id, attempt, outcome)
    SELECT id, n, 'SENT' FROM notifications, generate_series(1, 2) AS n ORDER BY id, n
    """,
    """
    INSERT INTO dead_letters (id, notification_id, channel_type, error_code, error_message, retryable, retry_count)
    SELECT gen_random_uuid(), id, 'push', 'X', 'x', true, 0 FROM notifications WHERE status = 'DEAD'
    """,
    """
    INSERT INTO notification_keys (caller_id, key, digest, notification_id)
    SELECT 7, id::text, '', id FROM notifications WHERE status = 'ACCEPTED'
    """,
)
COMPARED = {
    "notifications": "id, notification_type, recipient, recipient_user_id, subject, body, status, created_at, due_at",
    "notification_attempts": "id, notification_id, attempt, outcome, at",
    "dead_letters": "id, notification_id",
    "notification_keys": "key, notification_id",
}


def _rows(engine: Engine) -> dict[str, list[tuple[object, ...]]]:
    with engine.connect() as conn:
        return {
            table: [tuple(row) for row in conn.execute(text(f"SELECT {columns} FROM {table} ORDER BY 1"))]
            for table, columns in COMPARED.items()
        }


def test_rows_of_a_running_copy_get_into_their_months_and_back(empty_database: Engine) -> None:
    upgrade(empty_database, "0002")
    with empty_database.begin() as conn:
        for statement in FILL:
            conn.execute(text(statement))
    before = _rows(empty_database)
    upgrade(empty_database)
    assert _rows(empty_database) == before
    with empty_database.connect() as conn:
        found = conn.execute(text("SELECT tableoid::regclass::text, count(*) FROM notifications GROUP BY 1 ORDER BY 1"))
        assert [tuple(row) for row in found] == [
            ("notifications_2025_06", 2),
            ("notifications_2025_08", 1),
            ("notifications_default", 1),
        ]
        # A new attempt gets a new id.
        newest = conn.execute(
            text(
                "INSERT INTO notification_attempts (notification_id, attempt, outcome)"
                " VALUES (gen_random_uuid(), 1, 'SENT') RETURNING id"
            )
        )
        assert newest.scalar_one() == 9
        conn.rollback()
        command.downgrade(alembic_config(conn), "0002")
    assert _rows(empty_database) == before
