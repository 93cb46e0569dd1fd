"""Counts of messages for the limits of callers and recipients; an evaluation key belongs to who asked.

The owner of earlier keys that came over HTTP is not known, so that their requests cannot be repeated any more. Those of
the stream and of other packages keep their meaning.

Revision ID: 0011
Revises: 0008
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE sending_counts (
            subject uuid NOT NULL,
            window_s integer NOT NULL,
            began_at timestamptz NOT NULL,
            count integer NOT NULL,
            CONSTRAINT sending_counts_pkey PRIMARY KEY (subject, window_s)
        ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02)
        """
    )
    op.execute("ALTER TABLE actions ADD COLUMN key_owner text NOT NULL DEFAULT '', ADD COLUMN request_digest bytea")
    op.execute("UPDATE actions SET key_owner = origin WHERE evaluation_key IS NOT NULL")
    op.execute("DROP INDEX actions_evaluation_key")
    op.execute(
        "CREATE UNIQUE INDEX actions_evaluation_key ON actions (key_owner, evaluation_key)"
        " WHERE evaluation_key IS NOT NULL"
    )


def downgrade() -> None:
    op.execute(
        """
        UPDATE actions SET evaluation_key = NULL WHERE id IN (
            SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY evaluation_key ORDER BY id) AS number
                              FROM actions WHERE evaluation_key IS NOT NULL) AS keyed WHERE number > 1)
        """
    )
    op.execute("DROP INDEX actions_evaluation_key")
    op.execute("ALTER TABLE actions DROP COLUMN request_digest, DROP COLUMN key_owner")
    op.execute(
        "CREATE UNIQUE INDEX actions_evaluation_key ON actions (evaluation_key) WHERE evaluation_key IS NOT NULL"
    )
    op.execute("DROP TABLE sending_counts")
