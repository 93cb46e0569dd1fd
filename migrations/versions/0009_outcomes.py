"""Steps whose person may get a message twice.

Revision ID: 0009
Revises: 0008
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# What matching says to elders and coordinators.
TO_BE_SEEN = """
UPDATE action_plan_steps s SET may_arrive_twice = true
  FROM action_plans p
 WHERE p.id = s.action_plan_id
   AND p.key IN ('matching.on_the_way', 'matching.started', 'matching.completed', 'matching.searching_again',
                 'matching.nobody_found', 'matching.nobody_found_for', 'matching.not_started',
                 'matching.not_completed', 'matching.elder_left')
"""


def upgrade() -> None:
    op.execute("ALTER TABLE action_plan_steps ADD COLUMN may_arrive_twice boolean NOT NULL DEFAULT false")
    op.execute(TO_BE_SEEN)


def downgrade() -> None:
    op.execute("ALTER TABLE action_plan_steps DROP COLUMN may_arrive_twice")
