"""Queries that find broken promises at rest: no load, no faults, every task has ended.

Each must return no row. What a live copy can be asked too is in `app/jobs/checks`; here is what only the torture knows:
that everything has ended, which plans run, that no provider fails, and what each device received. People whom a list
or an administrator has deactivated get no more messages: what waits is given up (RECIPIENT_INACTIVE), and steps are
skipped.
"""

AT_REST = {
    "a task that has not ended": """
        SELECT id, status, next_step_at FROM tasks WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED')""",
    "an offer that is still live": """
        SELECT id, task_id, student_id, deadline FROM offers WHERE state = 'PENDING'""",
    "a notification that has not ended": """
        SELECT id, status, attempts, due_at FROM notifications WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING')""",
    "a notification that was given up": """
        SELECT n.id, n.status, n.error_code FROM notifications n
        WHERE (n.status = 'DEAD' OR (n.status <> 'SENT' AND n.metadata -> 'data' ->> 'type' <> 'OFFER'))
          AND NOT EXISTS (SELECT FROM notifications other WHERE other.action_id = n.action_id
                          AND other.step_order = n.step_order AND other.status = 'SENT')
          AND n.error_code IS DISTINCT FROM 'RECIPIENT_INACTIVE'""",
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
        WHERE n.status = 'SENT' AND n.notification_type <> 'AUDIT'
          AND NOT EXISTS (SELECT FROM recorded_pushes p WHERE p.notification_id = n.id)""",
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
    "an elder without exactly one message that nobody was found": """
        SELECT t.id, count(DISTINCT coalesce(n.action_id, n.id))
        FROM tasks t LEFT JOIN notifications n ON n.task_id = t.id
             AND n.recipient_user_id = t.elder_id AND n.metadata -> 'data' ->> 'type' = 'NOBODY_FOUND'
        GROUP BY t.id HAVING count(DISTINCT coalesce(n.action_id, n.id)) <> (t.status = 'TIMED_OUT')::int""",
    "a coordinator without exactly one message that nobody was found": """
        SELECT t.id, u.id, count(DISTINCT coalesce(n.action_id, n.id))
        FROM tasks t JOIN users e ON e.id = t.elder_id
        JOIN users u ON u.institution_id IS NOT DISTINCT FROM e.institution_id
        LEFT JOIN notifications n ON n.task_id = t.id
             AND n.recipient_user_id = u.id AND n.metadata -> 'data' ->> 'type' = 'NOBODY_FOUND_FOR'
        WHERE u.role = 'COORDINATOR'
        GROUP BY t.id, u.id HAVING count(DISTINCT coalesce(n.action_id, n.id)) <> (t.status = 'TIMED_OUT')::int""",
    "an elder without exactly one message that the task is completed": """
        SELECT t.id, count(DISTINCT coalesce(n.action_id, n.id))
        FROM tasks t LEFT JOIN notifications n ON n.task_id = t.id
             AND n.recipient_user_id = t.elder_id AND n.metadata -> 'data' ->> 'type' = 'COMPLETED'
        WHERE NOT EXISTS (SELECT FROM actions a WHERE a.task_id = t.id AND a.person_id = t.elder_id
                          AND a.data ->> 'type' = 'COMPLETED' AND a.steps -> 0 ->> 'state' = 'SKIPPED')
        GROUP BY t.id HAVING count(DISTINCT coalesce(n.action_id, n.id)) <> (t.status = 'COMPLETED')::int""",
}
