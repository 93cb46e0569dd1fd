"""Notifications and attempts in partitions by month, and the tables of retention.

Every row of both tables is copied, so this migration is for a maintenance window: all roles are stopped.

Revision ID: 0004
Revises: 0003
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime

from alembic import op
from sqlalchemy import text

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

FIRST_MONTH = date(2020, 1, 1)
"""Older ids were not made by this product. Their rows go to the default partition, as those of the far future do."""
AHEAD = 3

NOTIFICATIONS = """
    id uuid NOT NULL,
    notification_type text NOT NULL,
    recipient text NOT NULL,
    recipient_user_id bigint,
    subject text NOT NULL,
    body text NOT NULL,
    priority text NOT NULL DEFAULT 'NORMAL' CONSTRAINT notifications_priority_check
        CHECK (priority IN ('LOW', 'NORMAL', 'HIGH', 'URGENT')),
    status text NOT NULL DEFAULT 'ACCEPTED' CONSTRAINT notifications_status_check
        CHECK (status IN ('ACCEPTED', 'SENDING', 'RETRYING', 'SENT', 'DEAD', 'EXPIRED', 'CANCELLED')),
    metadata jsonb NOT NULL DEFAULT '{}',
    task_id uuid,
    action_id uuid,
    step_order integer,
    channel_id bigint,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    due_at timestamptz DEFAULT clock_timestamp(),
    attempts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    fresh_from integer NOT NULL DEFAULT 0,
    finished_at timestamptz,
    error_code text,
    CONSTRAINT notifications_live_is_due_check
        CHECK ((status IN ('ACCEPTED', 'SENDING', 'RETRYING')) = (due_at IS NOT NULL)),
    CONSTRAINT notifications_live_is_unfinished_check
        CHECK ((status IN ('ACCEPTED', 'SENDING', 'RETRYING')) = (finished_at IS NULL))
"""
NOTIFICATION_COLUMNS = """
    id, notification_type, recipient, recipient_user_id, subject, body, priority, status, metadata, task_id, action_id,
    step_order, channel_id, created_at, expires_at, due_at, attempts, failures, fresh_from, finished_at, error_code
"""
NOTIFICATION_INDEXES = """
CREATE INDEX notifications_due_idx ON notifications (notification_type, priority, due_at)
    WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING');
CREATE INDEX notifications_failed_idx ON notifications (status, id) WHERE status IN ('DEAD', 'EXPIRED', 'CANCELLED');
CREATE INDEX notifications_recipient_idx ON notifications (recipient_user_id, id);
CREATE INDEX notifications_task_idx ON notifications (task_id) WHERE task_id IS NOT NULL;
"""
OFTEN_VACUUMED = "WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)"

ATTEMPTS = """
    notification_id uuid NOT NULL,
    attempt integer NOT NULL,
    device_id text,
    outcome text NOT NULL CONSTRAINT notification_attempts_outcome_check
        CHECK (outcome IN ('SENT', 'TRANSIENT', 'PERMANENT', 'RECIPIENT_GONE', 'UNKNOWN')),
    error_code text,
    provider_message_id text,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
"""
ATTEMPT_COLUMNS = "id, notification_id, attempt, device_id, outcome, error_code, provider_message_id, at"

# Foreign keys from and to a partitioned table would make adding and dropping a partition lock the other table as well.
DROP_FOREIGN_KEYS = """
ALTER TABLE notification_attempts DROP CONSTRAINT notification_attempts_notification_id_fkey;
ALTER TABLE notification_keys DROP CONSTRAINT notification_keys_notification_id_fkey;
ALTER TABLE dead_letters DROP CONSTRAINT dead_letters_notification_id_fkey;
"""
# The names of the old tables, their indexes and their constraints become free.
SET_ASIDE = """
CREATE SCHEMA before_partitions;
ALTER TABLE notifications SET SCHEMA before_partitions;
ALTER TABLE notification_attempts SET SCHEMA before_partitions;
"""
PARTITIONED = f"""
CREATE TABLE notifications ({NOTIFICATIONS}, CONSTRAINT notifications_pkey PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE notifications_default PARTITION OF notifications DEFAULT {OFTEN_VACUUMED};
CREATE SEQUENCE notification_attempts_id_seq;
CREATE TABLE notification_attempts (
    id bigint NOT NULL DEFAULT nextval('notification_attempts_id_seq'), {ATTEMPTS},
    CONSTRAINT notification_attempts_pkey PRIMARY KEY (notification_id, id)
) PARTITION BY RANGE (notification_id);
ALTER SEQUENCE notification_attempts_id_seq OWNED BY notification_attempts.id;
CREATE TABLE notification_attempts_default PARTITION OF notification_attempts DEFAULT;
"""
# Of an id of version 7, the first 48 bits are milliseconds since 1970.
MONTHS_WITH_ROWS = """
SELECT DISTINCT date_trunc('month', to_timestamp(
    ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) AT TIME ZONE 'UTC')::date AS month
FROM before_partitions.notifications WHERE id >= :first AND id < :last
"""
COPY = f"""
INSERT INTO notifications ({NOTIFICATION_COLUMNS}) SELECT {NOTIFICATION_COLUMNS} FROM before_partitions.notifications;
INSERT INTO notification_attempts ({ATTEMPT_COLUMNS})
    SELECT {ATTEMPT_COLUMNS} FROM before_partitions.notification_attempts;
SELECT setval('notification_attempts_id_seq', max(id)) FROM notification_attempts HAVING count(*) > 0;
DROP SCHEMA before_partitions CASCADE;
"""
RETENTION = """
CREATE TABLE retention_marks (
    kind text NOT NULL,
    mark text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT retention_marks_pkey PRIMARY KEY (kind)
);
CREATE TABLE notification_counts (
    month date NOT NULL,
    notification_type text NOT NULL,
    status text NOT NULL,
    notifications bigint NOT NULL,
    attempts bigint NOT NULL,
    CONSTRAINT notification_counts_pkey PRIMARY KEY (month, notification_type, status)
);
"""

UNPARTITIONED = f"""
CREATE TABLE notifications ({NOTIFICATIONS}, CONSTRAINT notifications_pkey PRIMARY KEY (id),
    CONSTRAINT notifications_recipient_user_id_fkey FOREIGN KEY (recipient_user_id) REFERENCES users (id)
) {OFTEN_VACUUMED};
CREATE TABLE notification_attempts (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, {ATTEMPTS}
);
"""
# Rows that refer to a notification that was forgotten go with it.
RESTORE_FOREIGN_KEYS = """
DELETE FROM notification_attempts a WHERE NOT EXISTS (SELECT FROM notifications n WHERE n.id = a.notification_id);
DELETE FROM notification_keys k WHERE NOT EXISTS (SELECT FROM notifications n WHERE n.id = k.notification_id);
DELETE FROM dead_letters d WHERE d.notification_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM notifications n WHERE n.id = d.notification_id);
ALTER TABLE notification_attempts ADD CONSTRAINT notification_attempts_notification_id_fkey
    FOREIGN KEY (notification_id) REFERENCES notifications (id);
ALTER TABLE notification_keys ADD CONSTRAINT notification_keys_notification_id_fkey
    FOREIGN KEY (notification_id) REFERENCES notifications (id);
ALTER TABLE dead_letters ADD CONSTRAINT dead_letters_notification_id_fkey
    FOREIGN KEY (notification_id) REFERENCES notifications (id);
"""


def upgrade() -> None:
    # Copying may take longer than the limit of other migrations.
    op.execute("SET LOCAL statement_timeout = 0")
    op.execute(DROP_FOREIGN_KEYS)
    op.execute(SET_ASIDE)
    op.execute(PARTITIONED)
    for month in _months():
        op.execute(_partition("notifications", month, OFTEN_VACUUMED))
        op.execute(_partition("notification_attempts", month, ""))
    op.execute(COPY)
    op.execute(NOTIFICATION_INDEXES)
    op.execute(RETENTION)
    op.execute("CREATE INDEX notification_keys_notification_idx ON notification_keys (notification_id)")


def downgrade() -> None:
    op.execute("SET LOCAL statement_timeout = 0")
    op.execute("DROP TABLE retention_marks, notification_counts")
    op.execute("DROP INDEX notification_keys_notification_idx")
    op.execute(SET_ASIDE)
    op.execute(UNPARTITIONED)
    op.execute(COPY)
    op.execute(NOTIFICATION_INDEXES)
    op.execute("CREATE INDEX notification_attempts_notification_idx ON notification_attempts (notification_id)")
    op.execute(RESTORE_FOREIGN_KEYS)


def _months() -> Iterator[date]:
    """The months with rows, the current one, and some ahead."""
    conn = op.get_bind()
    today: date = conn.execute(text("SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date")).scalar_one()
    this_month = today.replace(day=1)
    values = {"first": _border(FIRST_MONTH), "last": _border(this_month)}
    past = {row.month for row in conn.execute(text(MONTHS_WITH_ROWS), values)}
    ahead = [this_month]
    for _ in range(AHEAD):
        ahead.append(_next(ahead[-1]))
    yield from sorted(past | set(ahead))


def _partition(table: str, month: date, options: str) -> str:
    borders = f"FROM ('{_border(month)}') TO ('{_border(_next(month))}')"
    return f"CREATE TABLE {table}_{month:%Y_%m} PARTITION OF {table} FOR VALUES {borders} {options}"


def _next(month: date) -> date:
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def _border(month: date) -> str:
    """The smallest id that can be made in this month."""
    milliseconds = int(datetime(month.year, month.month, 1, tzinfo=UTC).timestamp() * 1000)
    digits = f"{milliseconds:012x}".ljust(32, "0")
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
