"""The institution of messages, actions, dead letters and profiles, so that coordinators see those of their own only.

Existing rows get the institution that their elder has now.

Revision ID: 0013
Revises: 0008
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

SEEN = ("notifications", "actions", "dead_letters")

OF_TASK = "SELECT e.institution_id FROM tasks t JOIN users e ON e.id = t.elder_id WHERE t.id = row.task_id"
OF_PERSON = "SELECT e.institution_id FROM users e WHERE e.id = row.{person} AND e.role = 'ELDER'"
FILL = """
UPDATE {table} row SET institution_id = coalesce(({of_task}), ({of_person}))
 WHERE coalesce(({of_task}), ({of_person})) IS NOT NULL
"""
FILL_DEAD_LETTERS = """
UPDATE dead_letters d SET institution_id = coalesce(a.institution_id, n.institution_id)
  FROM dead_letters row LEFT JOIN actions a ON a.id = row.action_id
  LEFT JOIN notifications n ON n.id = row.notification_id
 WHERE d.id = row.id AND coalesce(a.institution_id, n.institution_id) IS NOT NULL
"""


def upgrade() -> None:
    op.execute("ALTER TABLE recipient_profiles ADD COLUMN institution_id bigint")
    op.execute(
        "ALTER TABLE recipient_profiles ADD CONSTRAINT recipient_profiles_one_owner_check"
        " CHECK (user_id IS NULL OR institution_id IS NULL)"
    )
    for table in SEEN:
        op.execute(f"ALTER TABLE {table} ADD COLUMN institution_id bigint")
    for table, person in (("notifications", "recipient_user_id"), ("actions", "person_id")):
        op.execute(FILL.format(table=table, of_task=OF_TASK, of_person=OF_PERSON.format(person=person)))
    op.execute(FILL_DEAD_LETTERS)
    for table in SEEN:
        op.execute(
            f"CREATE INDEX {table}_institution_idx ON {table} (institution_id, id) WHERE institution_id IS NOT NULL"
        )
    op.execute("CREATE INDEX users_elders_idx ON users (institution_id) WHERE role = 'ELDER'")


def downgrade() -> None:
    op.execute("DROP INDEX users_elders_idx")
    for table in (*SEEN, "recipient_profiles"):
        op.execute(f"ALTER TABLE {table} DROP COLUMN institution_id")
