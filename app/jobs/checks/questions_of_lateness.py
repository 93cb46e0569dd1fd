"""Questions about what should have happened by now. Something is always due on a live copy, hence the grace."""

from app.jobs.checks.promises import Promise, Question

MATCHERS = "Look whether a matcher runs (`/readyz`, `yaninda_due_longest_seconds`). It handles what is due at once."
DELIVERY = "Look whether the role delivery runs, and whether a provider is down (`yaninda_breaker`)."

OVERDUE = (
    Question(
        "an offer live long after its deadline",
        Promise.DEADLINE,
        """
        SELECT id AS offer_id, task_id FROM offers
        WHERE state = 'PENDING' AND deadline < (SELECT clock_timestamp() - make_interval(secs => :grace_s))""",
        "Nobody has closed the offer, so the search stands still.",
        MATCHERS,
    ),
    Question(
        "a task whose next step is long overdue",
        Promise.DEADLINE,
        """
        SELECT id AS task_id FROM tasks
        WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED')
          AND next_step_at < (SELECT clock_timestamp() - make_interval(secs => :grace_s))""",
        "No matcher has handled the task.",
        MATCHERS,
    ),
    Question(
        "a search that goes on long after its limit",
        Promise.ENDS,
        """
        SELECT id AS task_id FROM tasks
        WHERE status = 'PENDING'
          AND search_until < (SELECT clock_timestamp() - make_interval(secs => :offer_ttl_s + :grace_s))""",
        "The elder should have been told by now that nobody was found.",
        "A coordinator calls the elder, and cancels or assigns the task. " + MATCHERS,
    ),
    Question(
        "an offer that was closed long after its deadline",
        Promise.DEADLINE,
        """
        SELECT id AS offer_id, task_id FROM offers
        WHERE task_id >= :since AND state IN ('EXPIRED', 'WITHDRAWN')
          AND closed_at > deadline + make_interval(secs => :late_s)""",
        "The search lost time here. Deadlines within an outage are closed after it; others should not be late.",
        "Compare the times with the outages that you know. Those that remain had too few matchers, or a slow store.",
    ),
    Question(
        "a notification that waits too long",
        Promise.NOTHING_LOST,
        """
        SELECT id AS notification_id FROM notifications
        WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING')
          AND due_at < (SELECT clock_timestamp() - make_interval(secs => :grace_s))""",
        "Nobody has tried to send the message, or the worker that tried has died and none took over.",
        DELIVERY,
    ),
    Question(
        "an action that waits too long",
        Promise.NOTHING_LOST,
        """
        SELECT id AS action_id FROM actions
        WHERE status = 'RUNNING' AND due_at < (SELECT clock_timestamp() - make_interval(secs => :grace_s))""",
        "No conductor has advanced the action, so its further steps are not sent.",
        DELIVERY,
    ),
    Question(
        "an action that waits for nothing",
        Promise.NOTHING_LOST,
        """
        SELECT a.id AS action_id FROM actions a
        WHERE a.status = 'RUNNING' AND a.due_at IS NULL AND a.id >= :since
          AND a.created_at < (SELECT clock_timestamp() - make_interval(secs => :grace_s))
          AND NOT EXISTS (SELECT FROM notifications n
                          WHERE n.action_id = a.id AND n.status IN ('ACCEPTED', 'SENDING', 'RETRYING'))""",
        "None of its notifications is left to wake the action, so it never ends.",
        "Keep the result and report it. Send what its further steps would send by hand.",
    ),
)
