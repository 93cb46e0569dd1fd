"""Places that tell no position, students who withdraw or jump, and alarms that are joined.

The new columns are empty for existing rows, so no row is written again.

Revision ID: 0012
Revises: 0008
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        ALTER TABLE tasks ADD COLUMN area circle, ADD COLUMN alarm_owed boolean NOT NULL DEFAULT false,
            ADD COLUMN alarmed_at timestamptz
    """)
    op.execute("CREATE INDEX tasks_alarm_owed_idx ON tasks (elder_id) WHERE alarm_owed")
    op.execute("""
        ALTER TABLE students ADD COLUMN next_location geography(point, 4326), ADD COLUMN next_location_from timestamptz,
            ADD COLUMN ahead_m double precision, ADD COLUMN withdrew_at timestamptz[],
            ADD COLUMN suspended_at timestamptz,
            ADD CONSTRAINT students_suspended_is_off_duty_check CHECK (suspended_at IS NULL OR NOT on_duty),
            ADD CONSTRAINT students_one_location_counts_check CHECK (
                (next_location IS NULL) = (next_location_from IS NULL) AND (next_location IS NULL OR location IS NULL))
    """)
    op.execute("""
        CREATE INDEX students_next_location_idx ON students (next_location_from) WHERE next_location_from IS NOT NULL
    """)


def downgrade() -> None:
    op.execute("""
        UPDATE students SET location = next_location, next_location = NULL, next_location_from = NULL
        WHERE next_location IS NOT NULL
    """)
    op.execute("""
        ALTER TABLE students DROP COLUMN next_location, DROP COLUMN next_location_from, DROP COLUMN ahead_m,
            DROP COLUMN withdrew_at, DROP COLUMN suspended_at
    """)
    op.execute("ALTER TABLE tasks DROP COLUMN area, DROP COLUMN alarm_owed, DROP COLUMN alarmed_at")
