"""Room in the pages of the lists for the rows that change in one night.

Existing rows move into it as they change. The partition of a later kind is made with the same values.

Revision ID: 0008
Revises: 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

OF_EACH_LIST = """
DO $$
DECLARE list regclass;
BEGIN
    FOR list IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'roster_rows'::regclass LOOP
        EXECUTE 'ALTER TABLE ' || list || ' {action}';
    END LOOP;
END $$
"""


def upgrade() -> None:
    op.execute(OF_EACH_LIST.format(action="SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02)"))


def downgrade() -> None:
    op.execute(OF_EACH_LIST.format(action="RESET (fillfactor, autovacuum_vacuum_scale_factor)"))
