"""Steps whose person may get a message twice, dead letters that expire, and routes that stay when their profile is
retired.

Revision ID: 0009
Revises: 0008
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

STATUS = "ALTER TABLE dead_letters DROP CONSTRAINT {name}, ADD CONSTRAINT {name} CHECK (status IN ({values}))"
CLOSED = "'REDRIVEN', 'COVERED', 'DISCARDED'"

# What matching says to elders and coordinators.
TO_BE_SEEN = """
UPDATE action_plan_steps s SET may_arrive_twice = true
  FROM action_plans p
 WHERE p.id = s.action_plan_id
   AND p.key IN ('matching.on_the_way', 'matching.started', 'matching.completed', 'matching.searching_again',
                 'matching.nobody_found', 'matching.nobody_found_for', 'matching.not_started',
                 'matching.not_completed', 'matching.elder_left')
"""
# Only the retirement of its profile could retire a route after that.
RETIRED_WITH_PROFILE = """
UPDATE action_routes r SET retired_at = NULL, updated_at = clock_timestamp()
  FROM recipient_profiles p
 WHERE p.id = r.recipient_profile_id AND r.retired_at >= p.retired_at
   AND EXISTS (SELECT FROM action_plan_steps s
                WHERE s.action_plan_id = r.action_plan_id AND s.step_order = r.step_order AND s.retired_at IS NULL)
"""
EXPIRY = """
UPDATE dead_letters d
   SET expires_at = least((SELECT n.expires_at FROM notifications n WHERE n.id = d.notification_id),
                          (SELECT a.expires_at FROM actions a WHERE a.id = d.action_id))
 WHERE d.status = 'OPEN'
"""
# These would not be written any more, or would have been closed with their action.
NOBODY_CAN_MEND = """
UPDATE dead_letters d SET status = 'EXPIRED', closed_at = clock_timestamp()
 WHERE d.status = 'OPEN'
   AND (d.error_code = 'NO_DEVICE'
        OR EXISTS (SELECT FROM actions a WHERE a.id = d.action_id AND a.status = 'CANCELLED')
        OR EXISTS (SELECT FROM notifications n WHERE n.id = d.notification_id AND n.notification_type = 'PUSH'
                      AND n.subject = '' AND n.body = '' AND n.metadata -> 'data' ? 'type'))
"""


def upgrade() -> None:
    op.execute("ALTER TABLE action_plan_steps ADD COLUMN may_arrive_twice boolean NOT NULL DEFAULT false")
    op.execute(TO_BE_SEEN)
    op.execute(RETIRED_WITH_PROFILE)
    op.execute("ALTER TABLE dead_letters ADD COLUMN expires_at timestamptz")
    op.execute(STATUS.format(name="dead_letters_status_check", values=f"'OPEN', {CLOSED}, 'EXPIRED'"))
    op.execute(EXPIRY)
    op.execute(NOBODY_CAN_MEND)
    op.execute(
        "CREATE INDEX dead_letters_expiry_idx ON dead_letters (expires_at)"
        " WHERE status = 'OPEN' AND expires_at IS NOT NULL"
    )


def downgrade() -> None:
    op.execute("DROP INDEX dead_letters_expiry_idx")
    op.execute("UPDATE dead_letters SET status = 'DISCARDED' WHERE status = 'EXPIRED'")
    op.execute(STATUS.format(name="dead_letters_status_check", values=f"'OPEN', {CLOSED}"))
    op.execute("ALTER TABLE dead_letters DROP COLUMN expires_at")
    op.execute("ALTER TABLE action_plan_steps DROP COLUMN may_arrive_twice")
