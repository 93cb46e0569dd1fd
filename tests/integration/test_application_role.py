"""The role that the service runs as: it can do all of its work, and nothing to the audit trail but add to it."""

from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy.exc
from sqlalchemy import text

from app.db.database import Database, driver
from app.db.months import add_months, drop_month, partitions
from app.db.wake import WAKE_CHANNEL
from app.delivery.channels import audit_trail
from app.delivery.messages.values import NotificationType
from app.delivery.old_messages import OLD_MONTHS_OF_NOTIFICATIONS
from app.delivery.service import MONTHLY
from app.roster.people.people_statements import ANALYZE
from app.roster.sync.comparison import STORAGE
from tests.support.delivery import notification


@pytest.fixture
def service(application_url: str, clean_stores: None) -> Iterator[Database]:
    database = Database(application_url, pool_size=3)
    yield database
    database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE audit_entries",
        "UPDATE audit_entries SET body = 'x'",
        "DELETE FROM audit_entries",
        "ALTER TABLE audit_entries DISABLE TRIGGER audit_entries_append_only",
        "ALTER TABLE audit_entries DISABLE TRIGGER ALL",
        "ALTER TABLE audit_entries RENAME TO others",
        "ALTER TABLE audit_entries OWNER TO current_user",
        "DROP TABLE audit_entries",
        "DROP TRIGGER audit_entries_append_only ON audit_entries",
        "DROP TRIGGER note_change ON users",
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE RULE nothing AS ON INSERT TO audit_entries DO INSTEAD NOTHING",
        "CREATE TRIGGER other BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        "CREATE TABLE of_its_own (id int)",
        "SET session_replication_role = replica",
        "UPDATE alembic_version SET version_num = '0001'",
        "SELECT drop_partition('audit_entries')",
        "SELECT drop_partition('notifications_default')",
        "SELECT add_partition('audit_entries', '1', ARRAY['1'], '')",
        "SELECT add_partition('roster_rows', '1; DROP TABLE audit_entries', ARRAY['1'], '')",
        "SELECT add_partition('roster_rows', '1', ARRAY['1'], 'fillfactor = 85); DROP TABLE audit_entries; --')",
        "DROP TABLE notifications_default",
        "CREATE ROLE another SUPERUSER",
    ],
)
def test_trail_and_schema_are_out_of_its_reach(service: Database, statement: str) -> None:
    with service.transaction() as conn:
        audit_trail.append(conn, [notification(notification_type=NotificationType.AUDIT)])
    with pytest.raises(sqlalchemy.exc.ProgrammingError) as refused, service.transaction() as conn:
        conn.execute(text(statement))
    assert isinstance(refused.value.orig, psycopg.errors.InsufficientPrivilege)
    assert audit_trail.verify_audit_trail(service).count == 1


def test_statements_cannot_leave_the_bounds_of_a_partition(service: Database) -> None:
    with pytest.raises(sqlalchemy.exc.DBAPIError), service.transaction() as conn:
        conn.execute(text("SELECT add_partition('roster_rows', '98', ARRAY['98) ; DROP TABLE users; --'], '')"))
    with service.reading() as conn:
        left = "SELECT to_regclass('roster_rows_98') IS NULL AND to_regclass('users') IS NOT NULL"
        assert conn.execute(text(left)).scalar_one()


def test_it_is_no_superuser_and_owns_nothing(service: Database) -> None:
    with service.reading() as conn:
        assert not conn.execute(text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")).scalar_one()
        owned = "SELECT count(*) FROM pg_class WHERE relowner = current_user::regrole"
        assert conn.execute(text(owned)).scalar_one() == 0


def test_it_adds_and_drops_months(service: Database) -> None:
    notifications = MONTHLY[0]
    add_months(service, MONTHLY, ahead=6)
    with service.reading() as conn:
        last = partitions(conn, notifications)[-1]
        conn.execute(text(f"SELECT count(*) FROM {last.name}"))
    assert drop_month(service, OLD_MONTHS_OF_NOTIFICATIONS, last) == 0
    with service.reading() as conn:
        assert last not in partitions(conn, notifications)


def test_it_makes_the_partition_of_a_new_list(service: Database) -> None:
    with service.transaction() as conn:
        conn.execute(text(f"SELECT add_partition('roster_rows', '99', ARRAY['99'], '{STORAGE}')"))
        conn.execute(
            text(
                "INSERT INTO roster_rows (document_type, identifier, content_hash, fields, aliases)"
                " VALUES (99, 'a', gen_random_uuid(), '{}', '{}')"
            )
        )
        stored = "SELECT reloptions FROM pg_class WHERE relname = 'roster_rows_99'"
        assert conn.execute(text(stored)).scalar_one() == STORAGE.replace(" ", "").split(",")
        conn.rollback()


def test_it_reads_and_writes_every_table(service: Database) -> None:
    """Also those of later migrations: the rights come from what exists, and from the defaults of the owner."""
    missing = """
    SELECT relname FROM pg_class, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
       AND relname NOT IN ('audit_entries', 'alembic_version', 'spatial_ref_sys')
       AND NOT has_table_privilege(oid, needed)
    """
    with service.reading() as conn:
        assert conn.execute(text(missing)).all() == []
        # CASE, because a condition before it in the WHERE may be checked after it.
        denied = "CASE relkind WHEN 'S' THEN NOT has_sequence_privilege(oid, 'USAGE') END"
        sequences = f"SELECT relname FROM pg_class WHERE {denied}"
        assert conn.execute(text(sequences)).all() == []


def test_it_has_what_jobs_and_lists_need(service: Database) -> None:
    with service.transaction() as conn:
        conn.execute(text("CREATE TEMPORARY TABLE few (id int) ON COMMIT DROP"))
        with driver(conn).cursor() as cursor, cursor.copy("COPY few FROM STDIN") as copy:
            copy.write(b"1\n2\n")
        conn.execute(text("ANALYZE few"))
        assert conn.execute(text("SELECT count(*) FROM few")).scalar_one() == 2
        conn.execute(text("SELECT pg_advisory_xact_lock(7)"))
        conn.execute(text("SELECT id FROM users ORDER BY id FOR NO KEY UPDATE"))
        conn.execute(text("LOCK TABLE notifications IN ACCESS EXCLUSIVE MODE"))
        conn.execute(text("SELECT nextval('users_id_seq')"))


def test_statistics_are_refreshed(service: Database) -> None:
    with service.transaction() as conn:
        conn.execute(text("INSERT INTO users (role, name) SELECT 'ELDER', 'x' FROM generate_series(1, 7)"))
    with service.autocommit() as conn:
        conn.execute(ANALYZE)
        assert conn.execute(text("SELECT reltuples FROM pg_class WHERE relname = 'users'")).scalar_one() == 7


def test_it_listens(application_url: str, service: Database) -> None:
    url = application_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute(f"LISTEN {WAKE_CHANNEL}")
        with service.transaction() as conn:
            conn.execute(text("SELECT pg_notify(:channel, 'event')"), {"channel": WAKE_CHANNEL})
        assert [one.payload for one in listening.notifies(timeout=5, stop_after=1)] == ["event"]
