"""What became of tasks that nobody took, and indexes for the console of coordinators.

Revision ID: 0017
Revises: 0016
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# Tasks that timed out before have no row, so that nobody is asked about them years later.
OUTCOMES = """
CREATE TABLE task_outcomes (
    task_id uuid PRIMARY KEY REFERENCES tasks (id),
    outcome text,
    note text,
    said_by bigint REFERENCES users (id),
    said_at timestamptz,
    CONSTRAINT task_outcomes_outcome_check CHECK (
        outcome IN ('HELPED_BY_PHONE', 'HELPED_BY_OTHERS', 'NOT_NEEDED', 'NOT_REACHED', 'OTHER')),
    CONSTRAINT task_outcomes_said_at_once_check CHECK (
        (outcome IS NULL) = (said_at IS NULL) AND (outcome IS NULL) = (said_by IS NULL)
        AND (outcome IS NOT NULL OR note IS NULL))
);
CREATE INDEX task_outcomes_owed_idx ON task_outcomes (task_id) WHERE outcome IS NULL;
CREATE INDEX task_outcomes_said_idx ON task_outcomes (said_at);
CREATE TRIGGER note_change AFTER INSERT OR UPDATE ON task_outcomes FOR EACH ROW
    WHEN (current_setting('yaninda.author', true) <> '')
    EXECUTE FUNCTION note_change('task_id', 'outcome', 'outcome note');
"""

# As in 0015. Retention empties the note, and changes no time.
EVENT = """
CREATE FUNCTION note_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO new_events (type, task_id) VALUES ('TASK_RESOLVED', NEW.task_id);
    PERFORM pg_notify('events', '');
    RETURN NULL;
END $$;
CREATE TRIGGER note_first_outcome AFTER INSERT ON task_outcomes FOR EACH ROW
    WHEN (NEW.outcome IS NOT NULL) EXECUTE FUNCTION note_outcome();
CREATE TRIGGER note_outcome AFTER UPDATE ON task_outcomes FOR EACH ROW
    WHEN (OLD.said_at IS DISTINCT FROM NEW.said_at) EXECUTE FUNCTION note_outcome();
"""

# The words by which a person is found: the name in folded letters, and the phone number from several digits on.
DIGITS = "ltrim(regexp_replace(coalesce(phone, ''), '[^0-9]', '', 'g'), '0')"
WORDS = f"""array_to_tsvector(array_remove(string_to_array(
    translate(lower(regexp_replace(normalize(name, NFKD), '[\\u0300-\\u036f]', '', 'g')),
              'ı’`-.,/\\()"&''', 'i{" " * 12}')
    || ' ' || {DIGITS} || ' ' || right({DIGITS}, 10) || ' ' || right({DIGITS}, 7) || ' ' || right({DIGITS}, 4),
    ' '), ''))"""

INDEXES = f"""
DROP INDEX users_elders_idx;
CREATE INDEX users_elders_idx ON users (institution_id, id) WHERE role = 'ELDER';
CREATE INDEX users_students_idx ON users (institution_id, id) WHERE role = 'STUDENT';
CREATE INDEX users_search_idx ON users USING gin (({WORDS}));
CREATE INDEX students_unavailable_idx ON students USING gist (plane) WHERE active AND NOT available;
"""


def upgrade() -> None:
    op.execute(OUTCOMES)
    op.execute(EVENT)
    op.execute(INDEXES)


def downgrade() -> None:
    op.execute("DROP INDEX users_elders_idx, users_students_idx, users_search_idx, students_unavailable_idx")
    op.execute("CREATE INDEX users_elders_idx ON users (institution_id) WHERE role = 'ELDER'")
    op.execute("DROP TABLE task_outcomes")
    op.execute("DROP FUNCTION note_outcome")
