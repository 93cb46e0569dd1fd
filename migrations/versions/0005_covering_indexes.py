"""Indexes from which a report of a month is counted without reading the tables.

Status and state stand in the conditions of other indexes, so that their changes cost no more than before; a reason
changes only together with a state.

Builds two indexes on tables that are in use, so this migration is for a maintenance window: all roles are stopped.

Revision ID: 0005
Revises: 0004
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DROP INDEX tasks_elder_idx")
    op.execute("CREATE INDEX tasks_elder_idx ON tasks (elder_id, id) INCLUDE (status)")
    op.execute("DROP INDEX offers_student_idx")
    op.execute("CREATE INDEX offers_student_idx ON offers (student_id, task_id) INCLUDE (state, reason)")


def downgrade() -> None:
    op.execute("DROP INDEX tasks_elder_idx")
    op.execute("CREATE INDEX tasks_elder_idx ON tasks (elder_id, id)")
    op.execute("DROP INDEX offers_student_idx")
    op.execute("CREATE INDEX offers_student_idx ON offers (student_id, task_id)")
