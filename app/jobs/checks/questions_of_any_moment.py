"""Questions about what every transaction keeps: they hold in each snapshot, also while people press and accept.

The statements are written out and use no SQL of matching, so that a mistake there is not repeated here.
"""

from app.jobs.checks.promises import Promise, Question

BY_HAND = "Look at the tasks in the list, and end or release all but one by hand, as a coordinator."
COUNTS = "Run `jobs run rebuild_counts`, and again with `--param fix=true`."
REPORT = "Keep the result and report it: the service does not write this."


def waits_in_queue(user_id: str) -> str:
    """True for a person who left their list, until what they have is ended: they are deactivated before that."""
    return f"""EXISTS (SELECT FROM roster_people p JOIN roster_to_apply q USING (document_type, identifier)
                    WHERE p.user_id = {user_id})"""


AT_ANY_MOMENT = (
    Question(
        "two live offers for one student",
        Promise.ONE_AT_A_TIME,
        "SELECT student_id FROM offers WHERE state = 'PENDING' GROUP BY student_id HAVING count(*) > 1",
        "A student is asked for two tasks at the same time. The index offers_one_live_per_student is missing.",
        "Restore the index with the schema of the migrations. The later offer ends by itself at its deadline.",
    ),
    Question(
        "two live offers for one task",
        Promise.ONE_AT_A_TIME,
        "SELECT task_id FROM offers WHERE state = 'PENDING' GROUP BY task_id HAVING count(*) > 1",
        "A task asks two students at the same time. The index offers_one_live_per_task is missing.",
        "Restore the index with the schema of the migrations. The first accept withdraws the other offer.",
    ),
    Question(
        "two open tasks for one student",
        Promise.ONE_AT_A_TIME,
        "SELECT student_id FROM tasks WHERE status IN ('ASSIGNED', 'STARTED') GROUP BY student_id HAVING count(*) > 1",
        "A student has two tasks at the same time. The index tasks_one_open_per_student is missing.",
        BY_HAND,
    ),
    Question(
        "two open tasks for one elder",
        Promise.ONE_AT_A_TIME,
        """
        SELECT elder_id FROM tasks WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED')
        GROUP BY elder_id HAVING count(*) > 1""",
        "An elder has two open requests. The index tasks_one_open_per_elder is missing.",
        BY_HAND,
    ),
    Question(
        "open_task_id that is not the student's open task",
        Promise.KEPT_VALUES,
        """
        SELECT coalesce(s.id, t.student_id) AS student_id, s.open_task_id, t.id AS task_id FROM students s
        FULL JOIN (SELECT * FROM tasks WHERE status IN ('ASSIGNED', 'STARTED')) t ON t.student_id = s.id
        WHERE s.open_task_id IS DISTINCT FROM t.id""",
        "A student counts as busy without a task, and gets no offers; or counts as free with one.",
        COUNTS,
    ),
    Question(
        "a live offer of a task that is not searching",
        Promise.ONE_AT_A_TIME,
        """
        SELECT o.id AS offer_id, o.task_id, t.status FROM offers o JOIN tasks t ON t.id = o.task_id
        WHERE o.state = 'PENDING' AND t.status <> 'PENDING'""",
        "A student is asked for a task that somebody has, or that has ended.",
        REPORT,
    ),
    Question(
        "a live offer to a student who cannot take it",
        Promise.ONE_AT_A_TIME,
        f"""
        SELECT o.id AS offer_id, o.task_id, o.student_id FROM offers o JOIN students s ON s.id = o.student_id
        WHERE o.state = 'PENDING' AND NOT s.available AND NOT {waits_in_queue("s.id")}""",
        "A task waits for a student who is busy, off duty, or not active.",
        "A coordinator may move the search on. Otherwise it goes on at the deadline of the offer.",
    ),
    Question(
        "an assigned task without an accepted offer",
        Promise.NOTHING_LOST,
        """
        SELECT t.id AS task_id, t.student_id FROM tasks t
        LEFT JOIN offers o ON (o.task_id, o.student_id) = (t.id, t.student_id)
        WHERE t.status IN ('ASSIGNED', 'STARTED') AND o.state IS DISTINCT FROM 'ACCEPTED'""",
        "A student has a task, and the record of the accept is gone. The student cannot complete it.",
        "A coordinator assigns the task again or completes it. Rows may be missing: compare with the last backup.",
    ),
    Question(
        "an accepted offer of a task that its student does not have",
        Promise.NOTHING_LOST,
        """
        SELECT o.id AS offer_id, o.task_id, o.student_id, t.status FROM offers o JOIN tasks t ON t.id = o.task_id
        WHERE o.state = 'ACCEPTED' AND o.task_id >= :since AND t.student_id IS DISTINCT FROM o.student_id""",
        "A student accepted, and the task does not know the student.",
        "If the task is open, a coordinator assigns it to the student. Compare with the last backup.",
    ),
    Question(
        "counts of asked and skipped that differ from the offers",
        Promise.KEPT_VALUES,
        """
        SELECT t.id AS task_id, t.asked, t.skipped FROM tasks t
        LEFT JOIN (SELECT task_id, count(offered_at) AS asked, count(*) - count(offered_at) AS skipped
                   FROM offers WHERE task_id >= :since GROUP BY task_id) o ON o.task_id = t.id
        WHERE t.id >= :since AND (t.asked, t.skipped) <> (coalesce(o.asked, 0), coalesce(o.skipped, 0))""",
        "The page of a task shows wrong numbers, or offers are missing.",
        COUNTS,
    ),
    Question(
        "a search without next_step_at",
        Promise.ENDS,
        "SELECT id AS task_id FROM tasks WHERE status = 'PENDING' AND next_step_at IS NULL",
        "No matcher will look at this search again, so it does not end by itself.",
        "A coordinator moves the search on, assigns the task or cancels it.",
    ),
    Question(
        "next_step_at later than the live offer's deadline",
        Promise.DEADLINE,
        """
        SELECT t.id AS task_id, t.next_step_at, o.deadline FROM tasks t
        JOIN offers o ON o.task_id = t.id AND o.state = 'PENDING' WHERE t.next_step_at > o.deadline""",
        "The search goes on too late after this offer.",
        "A coordinator moves the search on.",
    ),
    Question(
        "next_step_at of a task that has ended",
        Promise.ENDS,
        """
        SELECT id AS task_id FROM tasks
        WHERE id >= :since AND status NOT IN ('PENDING', 'ASSIGNED', 'STARTED') AND next_step_at IS NOT NULL""",
        "A task that has ended is still scheduled. Matchers ignore it.",
        REPORT,
    ),
    Question(
        "a task whose status and ended_at disagree",
        Promise.ENDS,
        """
        SELECT id AS task_id FROM tasks
        WHERE id >= :since AND (status IN ('COMPLETED', 'TIMED_OUT', 'CANCELLED')) <> (ended_at IS NOT NULL)""",
        "A task has ended at no time, or goes on after its end.",
        REPORT,
    ),
    Question(
        "an offer whose state and closed_at disagree",
        Promise.DEADLINE,
        """
        SELECT id AS offer_id, task_id FROM offers
        WHERE task_id >= :since AND (state = 'PENDING') <> (closed_at IS NULL)""",
        "An offer has ended at no time, or is live after its end.",
        REPORT,
    ),
    Question(
        "an offer of which its student was not told",
        Promise.NOTHING_LOST,
        """
        SELECT o.id AS offer_id, o.task_id, o.student_id FROM offers o
        WHERE o.offered_at IS NOT NULL AND o.task_id >= :noticed_since AND NOT EXISTS (
            SELECT FROM actions a WHERE a.task_id = o.task_id AND a.person_id = o.student_id
              AND a.data ->> 'type' IN ('OFFER', 'ASSIGNED_TO_YOU'))""",
        "A search lost time with a student who did not know of the offer.",
        "Tell the coordinators of these tasks. Actions may be missing: compare with the last backup.",
    ),
    Question(
        "a person who was told the same twice",
        Promise.NOTHING_LOST,
        """
        SELECT task_id, person_id FROM actions
        WHERE task_id >= :noticed_since
          AND data ->> 'type' IN ('OFFER', 'NOBODY_FOUND', 'NOBODY_FOUND_FOR', 'COMPLETED')
        GROUP BY task_id, person_id, data ->> 'type' HAVING count(*) > 1""",
        "Two notices of one event were requested, so the person may have got two messages.",
        REPORT,
    ),
    Question(
        "an elder without exactly one notice that nobody was found",
        Promise.ENDS,
        """
        SELECT t.id AS task_id, t.elder_id FROM tasks t
        LEFT JOIN (SELECT task_id, person_id, count(*) AS notices FROM actions
                   WHERE task_id >= :noticed_since AND data ->> 'type' = 'NOBODY_FOUND' GROUP BY task_id, person_id) a
               ON a.task_id = t.id AND a.person_id = t.elder_id
        WHERE t.id >= :noticed_since AND coalesce(a.notices, 0) <> (t.status = 'TIMED_OUT')::int""",
        "An elder waits for help that does not come, or was told so although the search went on.",
        "A coordinator calls these elders.",
    ),
)
