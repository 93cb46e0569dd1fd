"""Queries that find broken promises at rest: no load, no faults, every task has ended.

Each query must return no row. The queries of `BROKEN_PROMISES` must return none at any moment.
"""

AT_REST = {
    "a task that has not ended": """
        SELECT id, status, next_step_at FROM tasks WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED')""",
    "an offer that is still live": """
        SELECT id, task_id, student_id, deadline FROM offers WHERE state = 'PENDING'""",
    "two accepted offers for one task": """
        SELECT task_id FROM offers WHERE state = 'ACCEPTED' GROUP BY task_id HAVING count(*) > 1""",
    "a student who was asked twice for one task": """
        SELECT task_id, student_id FROM offers GROUP BY task_id, student_id HAVING count(*) > 1""",
    "an offer that ended before its deadline": """
        SELECT id, deadline, closed_at FROM offers WHERE state = 'EXPIRED' AND closed_at < deadline""",
    "an offer accepted after its deadline": """
        SELECT id, deadline, closed_at FROM offers
        WHERE state = 'ACCEPTED' AND reason IS DISTINCT FROM 'ASSIGNED_BY_HAND'
          AND closed_at > deadline + interval '0.2 s'""",
    "an offer made after the search was over": """
        SELECT o.id, o.offered_at, t.search_until FROM offers o JOIN tasks t ON t.id = o.task_id
        WHERE o.reason IS DISTINCT FROM 'ASSIGNED_BY_HAND' AND o.offered_at > t.search_until + interval '4 s'""",
    "two offers live at the same time for one task": """
        SELECT a.id, b.id FROM offers a JOIN offers b ON b.task_id = a.task_id AND b.id <> a.id
        WHERE a.deadline IS NOT NULL AND b.deadline IS NOT NULL
          AND a.state IN ('EXPIRED', 'REJECTED') AND b.offered_at > a.offered_at
          AND b.offered_at < a.closed_at - interval '0.5 s'""",
    "two offers live at the same time for one student": """
        SELECT a.id, b.id FROM offers a JOIN offers b ON b.student_id = a.student_id AND b.id <> a.id
        WHERE a.deadline IS NOT NULL AND b.deadline IS NOT NULL
          AND a.state IN ('EXPIRED', 'REJECTED') AND b.offered_at > a.offered_at
          AND b.offered_at < a.closed_at - interval '0.5 s'""",
    "a notification that has not ended": """
        SELECT id, status, attempts, due_at FROM notifications WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING')""",
    "a notification that was given up": """
        SELECT n.id, n.status, n.error_code FROM notifications n
        WHERE (n.status = 'DEAD' OR (n.status <> 'SENT' AND n.metadata -> 'data' ->> 'type' <> 'OFFER'))
          AND NOT EXISTS (SELECT FROM notifications other WHERE other.action_id = n.action_id
                          AND other.step_order = n.step_order AND other.status = 'SENT')""",
    "two notifications of one step to the same address": """
        SELECT action_id, step_order, notification_type, recipient FROM notifications WHERE action_id IS NOT NULL
        GROUP BY action_id, step_order, notification_type, recipient HAVING count(*) > 1""",
    "an action that has not ended": """
        SELECT id, due_at, steps FROM actions WHERE status = 'RUNNING'""",
    "an offer that was not pushed while it was live": """
        SELECT n.id, n.status, n.finished_at, o.deadline, o.closed_at, o.state
        FROM notifications n JOIN offers o ON o.task_id = n.task_id AND o.student_id = n.recipient_user_id
        WHERE n.metadata -> 'data' ->> 'type' = 'OFFER' AND n.status <> 'SENT'
          AND n.finished_at < least(o.deadline, o.closed_at) - interval '1.5 s'""",
    "a cancelled notification of an offer that was not withdrawn": """
        SELECT n.id, o.state FROM notifications n
        JOIN offers o ON o.task_id = n.task_id AND o.student_id = n.recipient_user_id
        WHERE n.status = 'CANCELLED' AND n.metadata -> 'data' ->> 'type' = 'OFFER'
          AND o.state NOT IN ('WITHDRAWN', 'ACCEPTED', 'RELEASED')""",
    "a sent notification that no device received": """
        SELECT n.id FROM notifications n
        WHERE n.status = 'SENT' AND NOT EXISTS (SELECT FROM recorded_pushes p WHERE p.notification_id = n.id)""",
    "a sent notification that missed a device": """
        SELECT n.id, d.device_id FROM notifications n JOIN devices d ON d.user_id = n.recipient_user_id
        WHERE n.status = 'SENT' AND n.notification_type = 'PUSH' AND NOT EXISTS (
            SELECT FROM recorded_pushes p WHERE p.notification_id = n.id AND p.device_id = d.device_id)
          AND n.metadata -> 'data' ->> 'type' <> 'OFFER'""",
    "a push without a notification": """
        SELECT p.id FROM recorded_pushes p
        WHERE NOT EXISTS (SELECT FROM notifications n WHERE n.id = p.notification_id)""",
    "a notification recorded twice for one device": """
        SELECT notification_id, device_id FROM recorded_pushes GROUP BY notification_id, device_id
        HAVING count(*) > 1""",
    "a push sent twice to one device within a lease": """
        SELECT a.notification_id, a.device_id, a.at, b.at FROM notification_attempts a
        JOIN notification_attempts b ON b.notification_id = a.notification_id AND b.id > a.id
             AND b.attempt <> a.attempt AND b.device_id IS NOT DISTINCT FROM a.device_id
        WHERE a.outcome = 'SENT' AND b.outcome = 'SENT' AND b.at - a.at < interval '25 s'""",
    "an elder without exactly one notice that nobody was found": """
        SELECT t.id, count(DISTINCT coalesce(n.action_id, n.id))
        FROM tasks t LEFT JOIN notifications n ON n.task_id = t.id
             AND n.recipient_user_id = t.elder_id AND n.metadata -> 'data' ->> 'type' = 'NOBODY_FOUND'
        GROUP BY t.id HAVING count(DISTINCT coalesce(n.action_id, n.id)) <> (t.status = 'TIMED_OUT')::int""",
    "a coordinator without exactly one notice that nobody was found": """
        SELECT t.id, u.id, count(DISTINCT coalesce(n.action_id, n.id))
        FROM tasks t CROSS JOIN users u LEFT JOIN notifications n ON n.task_id = t.id
             AND n.recipient_user_id = u.id AND n.metadata -> 'data' ->> 'type' = 'NOBODY_FOUND_FOR'
        WHERE u.role = 'COORDINATOR'
        GROUP BY t.id, u.id HAVING count(DISTINCT coalesce(n.action_id, n.id)) <> (t.status = 'TIMED_OUT')::int""",
    "an elder without exactly one notice that the task is completed": """
        SELECT t.id, count(DISTINCT coalesce(n.action_id, n.id))
        FROM tasks t LEFT JOIN notifications n ON n.task_id = t.id
             AND n.recipient_user_id = t.elder_id AND n.metadata -> 'data' ->> 'type' = 'COMPLETED'
        GROUP BY t.id HAVING count(DISTINCT coalesce(n.action_id, n.id)) <> (t.status = 'COMPLETED')::int""",
    "a student whose count of completed tasks is wrong": """
        SELECT s.id, s.completed, count(t.id) FROM students s
        LEFT JOIN tasks t ON t.student_id = s.id AND t.status = 'COMPLETED'
        GROUP BY s.id HAVING s.completed <> count(t.id)""",
}
