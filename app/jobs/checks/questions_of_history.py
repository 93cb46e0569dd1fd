"""Questions about the record of the past. They hold in each snapshot too, but each reads the whole period."""

from app.delivery.contract import MAY_LACK_DEAD_LETTER
from app.jobs.checks.promises import Promise, Question
from app.jobs.checks.questions_of_any_moment import COUNTS, REPORT

# The clock is read more than once in a transaction, and a transaction may wait for a lock in between.
BETWEEN_TWO_READINGS = "interval '0.2 s'"
LONGEST_TRANSACTION = "interval '4 s'"
OVERLAP = "interval '0.5 s'"
SHORTEST_LEASE = "interval '25 s'"

CLOCKS = "Look whether the clock of PostgreSQL was moved at the times of these offers."


def _live_at_once(name: str, owner: str) -> Question:
    """Compares each offer with all earlier ones of its owner. One pass over sorted rows; a join of the offers of a busy
    student with themselves grows with the square of their number."""
    earlier = f"OVER (PARTITION BY {owner} ORDER BY offered_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    return Question(
        name,
        Promise.ONE_AT_A_TIME,
        f"""
        SELECT id AS offer_id, task_id, student_id FROM (
            SELECT id, task_id, student_id, offered_at,
                   max(closed_at) FILTER (WHERE state IN ('EXPIRED', 'REJECTED')) {earlier} AS earlier_closed_at
            FROM offers WHERE task_id >= :since AND deadline IS NOT NULL) pairs
        WHERE offered_at < earlier_closed_at - {OVERLAP}""",
        "The offer was made while an earlier one was still live.",
        REPORT,
    )


OF_HISTORY = (
    Question(
        "two accepted offers for one task",
        Promise.ONE_AT_A_TIME,
        """
        SELECT task_id FROM offers WHERE state = 'ACCEPTED' AND task_id >= :since
        GROUP BY task_id HAVING count(*) > 1""",
        "Two students may be on their way to one elder. The index offers_one_accepted_per_task is missing.",
        "A coordinator calls both students, and releases one.",
    ),
    Question(
        "a student who was asked twice for one task",
        Promise.NOTHING_LOST,
        """
        SELECT task_id, student_id FROM offers WHERE task_id >= :since
        GROUP BY task_id, student_id HAVING count(*) > 1""",
        "The constraint offers_once_per_student is missing.",
        "Restore the constraint with the schema of the migrations.",
    ),
    Question(
        "an offer that ended before its deadline",
        Promise.DEADLINE,
        """
        SELECT id AS offer_id, task_id, deadline, closed_at FROM offers
        WHERE task_id >= :since AND state = 'EXPIRED' AND closed_at < deadline""",
        "A student had less time to answer than was promised.",
        CLOCKS,
    ),
    Question(
        "an offer accepted after its deadline",
        Promise.DEADLINE,
        f"""
        SELECT id AS offer_id, task_id, deadline, closed_at FROM offers
        WHERE task_id >= :since AND state = 'ACCEPTED' AND reason IS DISTINCT FROM 'ASSIGNED_BY_HAND'
          AND closed_at > deadline + {BETWEEN_TWO_READINGS}""",
        "An accept that came too late was taken.",
        CLOCKS,
    ),
    Question(
        "an offer made after the search was over",
        Promise.DEADLINE,
        f"""
        SELECT o.id AS offer_id, o.task_id, o.offered_at, t.search_until FROM offers o JOIN tasks t ON t.id = o.task_id
        WHERE t.id >= :since AND o.task_id >= :since AND o.reason IS DISTINCT FROM 'ASSIGNED_BY_HAND'
          AND o.offered_at > t.search_until + {LONGEST_TRANSACTION}""",
        "A search asked somebody after its time limit.",
        CLOCKS,
    ),
    _live_at_once("two offers live at the same time for one task", "task_id"),
    _live_at_once("two offers live at the same time for one student", "student_id"),
    Question(
        "a message sent twice to one address within a lease",
        Promise.NOTHING_LOST,
        f"""
        SELECT again.notification_id, again.device_id AS device, first.at, again.at AS again_at
        FROM notification_attempts again
        JOIN notification_attempts first ON first.notification_id = again.notification_id
             AND first.device_id IS NOT DISTINCT FROM again.device_id AND first.attempt < again.attempt
        WHERE again.attempt > 1 AND again.outcome = 'SENT' AND first.outcome = 'SENT'
          AND again.notification_id >= :since AND first.notification_id >= :since
          AND again.at - first.at BETWEEN -{SHORTEST_LEASE} AND {SHORTEST_LEASE}""",
        "Two workers sent one message at the same time. After a lease (30 s) a repetition is allowed, because a worker"
        " that died may or may not have sent it.",
        REPORT,
    ),
    Question(
        "two notifications of one step to the same address",
        Promise.NOTHING_LOST,
        """
        SELECT action_id, step_order FROM notifications
        WHERE id >= :since AND action_id IS NOT NULL AND recipient <> ''
        GROUP BY action_id, step_order, notification_type, recipient HAVING count(*) > 1""",
        "A step of a plan was carried out twice, so somebody got a message twice.",
        REPORT,
    ),
    Question(
        "a notification that was given up without a dead letter",
        Promise.NOTHING_LOST,
        f"""
        SELECT id AS notification_id FROM notifications n
        WHERE status = 'DEAD' AND id >= :noticed_since AND NOT {MAY_LACK_DEAD_LETTER}
          AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.notification_id = n.id)""",
        "A message did not arrive, and the list of dead letters does not show it.",
        "Send the message again by other means. Older dead letters may have been forgotten by retention: they are no"
        " violation.",
    ),
    Question(
        "an elder without exactly one notice that the task is completed",
        Promise.ENDS,
        """
        SELECT t.id AS task_id, t.elder_id FROM tasks t
        LEFT JOIN (SELECT task_id, person_id, count(*) AS notices FROM actions
                   WHERE task_id >= :noticed_since AND data ->> 'type' = 'COMPLETED' GROUP BY task_id, person_id) a
               ON a.task_id = t.id AND a.person_id = t.elder_id
        WHERE t.id >= :noticed_since AND coalesce(a.notices, 0) <> (t.status = 'COMPLETED')::int""",
        "An elder was not told that the task is completed, or was told so before it was.",
        "Actions may be missing: compare with the last backup.",
    ),
    Question(
        "a search that timed out, and no coordinator was told",
        Promise.ENDS,
        """
        SELECT t.id AS task_id FROM tasks t
        WHERE t.status = 'TIMED_OUT' AND t.id >= :noticed_since
          AND EXISTS (SELECT FROM users u WHERE u.role IN ('COORDINATOR', 'ADMIN') AND u.active
                      AND u.created_at < t.ended_at)
          AND NOT (t.alarm_owed AND t.ended_at > clock_timestamp() - interval '1 hour')
          AND NOT EXISTS (SELECT FROM actions a WHERE a.task_id = t.id AND a.data ->> 'type' = 'NOBODY_FOUND_FOR')
          AND NOT EXISTS (SELECT FROM tasks joined JOIN actions a ON a.task_id = joined.id
                          WHERE joined.elder_id = t.elder_id AND joined.alarmed_at = t.alarmed_at
                            AND a.data ->> 'type' = 'NOBODY_FOUND_FOR')""",
        "Nobody of the staff knows that this elder got no help.",
        "A coordinator calls these elders.",
    ),
    Question(
        "a student whose count of completed tasks is wrong",
        Promise.KEPT_VALUES,
        """
        SELECT s.id AS student_id, s.completed, t.completed AS right FROM students s
        CROSS JOIN (SELECT date_trunc('month', clock_timestamp() AT TIME ZONE :time_zone) AS month) this
        LEFT JOIN (SELECT student_id, count(*) AS completed FROM tasks,
                          (SELECT date_trunc('month', clock_timestamp() AT TIME ZONE :time_zone)
                                  AT TIME ZONE :time_zone AS begins) month
                   WHERE status = 'COMPLETED' AND updated_at >= begins AND ended_at >= begins GROUP BY student_id) t
               ON t.student_id = s.id
        WHERE CASE WHEN s.month = this.month::date THEN s.completed ELSE 0 END <> coalesce(t.completed, 0)""",
        "The student is asked too early or too late, because those who helped less this month are asked first.",
        COUNTS,
    ),
    Question(
        "a student whose two rows disagree about being active",
        Promise.KEPT_VALUES,
        "SELECT s.id AS student_id FROM students s JOIN users u ON u.id = s.id WHERE s.active <> u.active",
        "A student who left is asked, or an active one is not.",
        COUNTS,
    ),
)
