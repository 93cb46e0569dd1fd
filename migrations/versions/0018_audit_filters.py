"""Indexes by which the audit trail is filtered: by author, by deed, by subject and by time.

Revision ID: 0018
Revises: 0017
"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

# The ids that an entry is about, such as `users:6`: those of its address, and those of the rows that changed. Services
# may write any metadata, so what has another form than that of a deed is left out and never refused.
SUBJECTS = r"""
CREATE FUNCTION audit_subjects(recipient text, metadata json) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ARRAY(
        SELECT found[1] || ':' || found[2]
          FROM regexp_matches(
                   recipient, '([a-z-]{1,40})[/:]([0-9]{1,19}|[0-9a-f]{8}-[0-9a-f-]{27})(?=/|$)', 'g'
               ) AS found
        UNION
        SELECT replace(CASE key WHEN 'id' THEN change ->> 'table' ELSE regexp_replace(key, '_id$', '') END, '_', '-')
               || ':' || id
          FROM json_array_elements(
                   CASE json_typeof(metadata -> 'changes') WHEN 'array' THEN metadata -> 'changes' ELSE '[]' END
               ) AS changes (change),
               json_each_text(
                   CASE json_typeof(change -> 'row') WHEN 'object' THEN change -> 'row' ELSE '{}' END
               ) AS ids (key, id)
         WHERE id ~ '^([0-9]{1,19}|[0-9a-f]{8}-[0-9a-f-]{27})$'
           AND CASE key WHEN 'id' THEN change ->> 'table' ELSE key END ~ '^[a-z_]{1,40}$'
    )
$$;
"""

INDEXES = """
CREATE INDEX audit_entries_time_idx ON audit_entries (written_at, id);
CREATE INDEX audit_entries_author_idx ON audit_entries (author, written_at, id);
CREATE INDEX audit_entries_deed_idx ON audit_entries (subject, written_at, id);
CREATE INDEX audit_entries_subjects_idx ON audit_entries USING gin (audit_subjects(recipient, metadata));
"""


def upgrade() -> None:
    # Not as text(), in which a colon would be a parameter.
    op.get_bind().exec_driver_sql(SUBJECTS)
    op.execute(INDEXES)


def downgrade() -> None:
    op.execute(
        "DROP INDEX audit_entries_time_idx, audit_entries_author_idx, audit_entries_deed_idx,"
        " audit_entries_subjects_idx"
    )
    op.execute("DROP FUNCTION audit_subjects")
