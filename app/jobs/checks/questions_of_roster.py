"""Questions about lists, their changes, and the people who follow them. They hold in each snapshot, also while a run
works or was killed: whoever waits in `roster_to_apply` has not followed their list yet."""

from app.jobs.checks.promises import Promise, Question
from app.jobs.checks.questions_of_any_moment import BY_HAND, REPORT, waits_in_queue

BEGIN_ANEW = "Compare with the last backup. Consumers of this list have to begin with the archive again."

OF_ROSTER = (
    Question(
        "a gap in the positions of changes",
        Promise.LISTS,
        """
        SELECT document_type AS kind_id FROM roster_states s
        FULL JOIN (SELECT document_type, count(*) AS changes, min(position) AS least, max(position) AS greatest
                   FROM roster_changes GROUP BY document_type) c USING (document_type)
        WHERE s.last_position IS NULL OR coalesce(c.changes, 0) <> s.last_position - s.kept_from
           OR c.least <= s.kept_from OR c.greatest > s.last_position""",
        "Changes are missing, so the copies of consumers differ from the list and nobody notices.",
        BEGIN_ANEW,
    ),
    Question(
        "a change that belongs to no run",
        Promise.LISTS,
        """
        SELECT c.document_type AS kind_id, c.position FROM roster_changes c
        LEFT JOIN sync_metadata m USING (document_type, changed_at)
        WHERE m.run_id IS NULL OR c.position <= m.first_position OR c.position > m.last_position""",
        "A run was kept in part, or another program wrote changes.",
        BEGIN_ANEW,
    ),
    Question(
        "a run that does not go on from the one before",
        Promise.LISTS,
        """
        SELECT run_id, document_type AS kind_id FROM (
            SELECT *, lag(last_position) OVER runs AS position_before, lag(rows) OVER runs AS rows_before,
                   coalesce((report ->> 'added')::bigint, 0) AS added,
                   coalesce((report ->> 'modified')::bigint, 0) AS modified
            FROM sync_metadata WINDOW runs AS (PARTITION BY document_type ORDER BY changed_at)) m
        WHERE first_position <> position_before OR rows <> rows_before + added - removed
           OR last_position - first_position
              <> CASE WHEN (report ->> 'is_first')::boolean THEN 0 ELSE added + modified + removed END""",
        "A run is missing, or two runs worked at the same time.",
        BEGIN_ANEW,
    ),
    Question(
        "a list that is not as its last run left it",
        Promise.LISTS,
        """
        SELECT m.run_id, document_type AS kind_id FROM roster_states s
        FULL JOIN (SELECT DISTINCT ON (document_type) * FROM sync_metadata ORDER BY document_type, changed_at DESC) m
             USING (document_type)
        LEFT JOIN (SELECT document_type, count(*) AS rows FROM roster_rows GROUP BY document_type) r
             USING (document_type)
        WHERE s.last_position IS DISTINCT FROM m.last_position OR s.rows IS DISTINCT FROM m.rows
           OR s.rows <> coalesce(r.rows, 0)""",
        "A run was kept in part, or another program wrote rows.",
        BEGIN_ANEW,
    ),
    Question(
        "an archive of a position that no run has reached",
        Promise.LISTS,
        """
        SELECT document_type AS kind_id FROM roster_states s
        WHERE (archive_position IS NULL) <> (archive_name IS NULL)
           OR archive_position IS NOT NULL AND NOT EXISTS (
              SELECT FROM sync_metadata m
              WHERE m.document_type = s.document_type AND m.last_position = s.archive_position)""",
        "Consumers cannot begin with this archive.",
        "Set archive_position and archive_name of the row to null, and run `roster sync`: it writes a new archive.",
    ),
    Question(
        "a person who neither follows the list nor waits to follow it",
        Promise.LISTS,
        """
        SELECT p.user_id FROM roster_people p
        LEFT JOIN roster_rows r USING (document_type, identifier)
        LEFT JOIN roster_to_apply q USING (document_type, identifier)
        WHERE q.run_id IS NULL AND (p.left_at IS NULL) <> (r.content_hash IS NOT NULL)""",
        "Somebody who is off the list counts as listed, or the other way round.",
        "An administrator activates or deactivates the user. " + REPORT,
    ),
    # An administrator may activate somebody who is on no list; that is later than their leaving.
    Question(
        "a person who left the list and is active",
        Promise.LISTS,
        """
        SELECT p.user_id FROM roster_people p JOIN users u ON u.id = p.user_id
        LEFT JOIN roster_to_apply q USING (document_type, identifier)
        WHERE q.run_id IS NULL AND u.active AND u.updated_at <= p.left_at""",
        "Somebody may use the service whom nobody vouches for any more.",
        "An administrator deactivates the user. " + REPORT,
    ),
    Question(
        "an open task of a person who is not active",
        Promise.ENDS,
        f"""
        SELECT t.id AS task_id, u.id AS user_id FROM tasks t JOIN users u ON u.id IN (t.elder_id, t.student_id)
        WHERE t.status IN ('PENDING', 'ASSIGNED', 'STARTED') AND NOT u.active AND NOT {waits_in_queue("u.id")}""",
        "A student who has left has a task, or students are asked for an elder who has left.",
        BY_HAND,
    ),
)
