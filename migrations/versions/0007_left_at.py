"""When people left their list, so that it can be forgotten after a time that they were on it.

Revision ID: 0007
Revises: 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE roster_people ADD COLUMN left_at timestamptz")
    op.execute("UPDATE roster_people SET left_at = clock_timestamp() WHERE NOT in_service")
    op.execute("ALTER TABLE roster_people DROP COLUMN in_service")


def downgrade() -> None:
    op.execute("ALTER TABLE roster_people ADD COLUMN in_service boolean")
    op.execute("UPDATE roster_people SET in_service = left_at IS NULL")
    op.execute("ALTER TABLE roster_people ALTER COLUMN in_service SET NOT NULL")
    op.execute("ALTER TABLE roster_people DROP COLUMN left_at")
