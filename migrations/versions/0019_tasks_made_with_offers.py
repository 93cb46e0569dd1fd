"""The event of a first offer, for tasks that are made together with it.

Revision ID: 0019
Revises: 0018
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# `asked` counts earlier offers only: a later offer is counted after it was inserted, in the same transaction. A task
# that is made with its offer is inserted with its count, and with the time of the offer.
NOTE_OFFER = """
CREATE OR REPLACE FUNCTION note_new_offer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO new_events (type, task_id, person_id, deadline, reason)
    SELECT CASE WHEN NEW.state = 'SKIPPED' THEN 'STUDENT_SKIPPED' WHEN {asked_before} THEN 'TASK_REOFFERED'
                ELSE 'TASK_OFFERED' END, NEW.task_id, NEW.student_id, NEW.deadline, NEW.reason
      FROM tasks t WHERE t.id = NEW.task_id AND t.status = 'PENDING';
    IF FOUND THEN
        PERFORM pg_notify('events', '');
    END IF;
    RETURN NULL;
END $$;
"""


def upgrade() -> None:
    op.execute(NOTE_OFFER.replace("{asked_before}", "t.asked > 0 AND t.created_at < NEW.offered_at"))


def downgrade() -> None:
    op.execute(NOTE_OFFER.replace("{asked_before}", "t.asked > 0"))
