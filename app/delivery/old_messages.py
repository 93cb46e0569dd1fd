"""What retention forgets of messages. Nothing is forgotten that may still be sent: live notifications, running actions,
and everything that an open dead letter refers to, because an operator may redrive it.

First the words, addresses and variables of messages are emptied, row by row. Later the rows of notifications and
attempts are dropped, whole months at a time, and `notification_counts` keeps their numbers.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from app.db.bites import KeyType, Sweep
from app.db.months import OldMonths, Part, SweepByMonth
from app.db.schema import one_of
from app.delivery.messages.dead_letter_states import DeadLetterStatus
from app.delivery.messages.models import MONTHLY
from app.delivery.messages.states import LIVE

NOTIFICATIONS, ATTEMPTS = MONTHLY

_OPEN = one_of("d.status", {DeadLetterStatus.OPEN})
_OPEN_DEAD_LETTER = f"EXISTS (SELECT FROM dead_letters d WHERE d.notification_id = t.id AND {_OPEN})"
_OPEN_FOR_ACTION = f"EXISTS (SELECT FROM dead_letters d WHERE d.action_id = t.id AND {_OPEN})"
_ACTION_RUNS = "EXISTS (SELECT FROM actions a WHERE a.id = t.action_id AND a.status = 'RUNNING')"
_IS_LIVE = one_of("t.status", LIVE)
MAY_BE_SENT = f"({_IS_LIVE} OR {_ACTION_RUNS})"

# Addresses of users are ids, which stay. So does the kind of a notice: the promises are checked by it.
_EMPTY = {
    "recipient": "CASE WHEN t.recipient LIKE 'user:%' THEN t.recipient ELSE '' END",
    "subject": "''",
    "body": "''",
    "metadata": """CASE WHEN t.task_id IS NOT NULL AND t.metadata -> 'data' ? 'type'
                        THEN jsonb_build_object('data', jsonb_build_object('type', t.metadata -> 'data' -> 'type'))
                        ELSE '{}' END""",
}
EMPTY_NOTIFICATION = ", ".join(f"{column} = {value}" for column, value in _EMPTY.items())
_HAS_WORDS = f"({', '.join(f't.{column}' for column in _EMPTY)}) <> ({', '.join(_EMPTY.values())})"
EMPTY_STEPS = """
    coalesce((SELECT jsonb_agg(CASE WHEN step ? 'targets' THEN jsonb_set(step, '{targets}', (
                  SELECT coalesce(jsonb_agg(CASE WHEN target ->> 'recipient' LIKE 'user:%' THEN target
                                                 ELSE target || '{"recipient": ""}' END ORDER BY m), '[]')
                    FROM jsonb_array_elements(step -> 'targets') WITH ORDINALITY AS one (target, m)))
                ELSE step END ORDER BY n)
       FROM jsonb_array_elements(t.steps) WITH ORDINALITY AS each (step, n)), '[]')
"""
EMPTY_ACTION = f"""
    context = '{{}}', variables = '{{}}', request_digest = NULL, steps = {EMPTY_STEPS},
    data = CASE WHEN t.task_id IS NOT NULL AND t.data ? 'type' THEN jsonb_build_object('type', t.data -> 'type')
                ELSE '{{}}' END
"""


_MARK = "messages"
_WORDS = Sweep(
    table="notifications",
    key=KeyType.UUID,
    chosen=f"NOT {MAY_BE_SENT} AND NOT {_OPEN_DEAD_LETTER} AND {_HAS_WORDS}",
    sets=EMPTY_NOTIFICATION,
    waits_for=MAY_BE_SENT,
)
OLD_WORDS = SweepByMonth(NOTIFICATIONS, replace(_WORDS, examined="t.id < :before", mark=_MARK))
# A row is in the default partition because its id is not of this product, so its age is in another column.
STRAY_WORDS = replace(
    _WORDS,
    table=NOTIFICATIONS.default,
    chosen=f"t.created_at < :cutoff AND {_WORDS.chosen}",
)
OLD_VARIABLES = Sweep(
    table="actions",
    key=KeyType.UUID,
    examined="t.id < :before",
    chosen=f"t.finished_at IS NOT NULL AND NOT {_OPEN_FOR_ACTION}",
    sets=EMPTY_ACTION,
    waits_for="t.finished_at IS NULL",
    mark="actions",
)


def _of(alias: str, sql: str) -> str:
    """The same SQL for another name of the table."""
    return re.sub(r"\bt\.", f"{alias}.", sql)


# An open dead letter protects what it is about while the marks above pass by. After it was closed, these two follow.
_CLOSED = "NOT " + one_of("t.status", {DeadLetterStatus.OPEN})
_ITS_WORDS = f"n.id = t.notification_id AND {_of('n', _WORDS.chosen)}"
_WORDS_OF_CLOSED = Sweep(
    table="dead_letters",
    key=KeyType.UUID,
    chosen=f"{_CLOSED} AND t.notification_id < :before AND EXISTS (SELECT FROM notifications n WHERE {_ITS_WORDS})",
    another="notifications n",
    linked=_ITS_WORDS,
    sets=_of("n", EMPTY_NOTIFICATION),
    since="t.failed_at",
    behind=_MARK,
    up_to_behind="t.notification_id <= CAST(:behind AS uuid)",
)
_ITS_VARIABLES = f"""
    n.id = t.action_id AND {_of("n", OLD_VARIABLES.chosen)} AND (n.variables <> '{{}}' OR n.context <> '{{}}')
"""
WORDS_OF_CLOSED = SweepByMonth(NOTIFICATIONS, _WORDS_OF_CLOSED)
VARIABLES_OF_CLOSED = replace(
    _WORDS_OF_CLOSED,
    chosen=f"{_CLOSED} AND t.action_id < :before AND EXISTS (SELECT FROM actions n WHERE {_ITS_VARIABLES})",
    another="actions n",
    linked=_ITS_VARIABLES,
    sets=_of("n", EMPTY_ACTION),
    behind=OLD_VARIABLES.mark,
    up_to_behind="t.action_id <= CAST(:behind AS uuid)",
)
OLD_RECORDED = Sweep(
    table="recorded_pushes",
    key=KeyType.BIGINT,
    chosen="t.shown_at < :cutoff",
    since="t.shown_at",
    is_in_time_order=True,
)
OLD_IN_APP = Sweep(
    table="in_app_messages",
    key=KeyType.BIGINT,
    chosen="t.created_at < :cutoff",
    is_in_time_order=True,
)
OLD_DEAD_LETTERS = Sweep(
    table="dead_letters",
    key=KeyType.UUID,
    examined="t.id < :before",
    chosen="t.closed_at < :cutoff",
    since="t.closed_at",
)
OLD_ACTIONS = Sweep(
    table="actions",
    key=KeyType.UUID,
    examined="t.id < :before",
    chosen="t.finished_at < :cutoff AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.action_id = t.id)",
)
_OF_LIVE = "SELECT FROM notifications n WHERE n.id = t.notification_id AND " + one_of("n.status", LIVE)
OLD_KEYS = Sweep(
    table="notification_keys",
    key=KeyType.UUID,
    order="notification_id",
    identity="notification_id",
    examined="t.notification_id < :before",
    chosen=f"NOT EXISTS ({_OF_LIVE})",
)
OLD_CODES = Sweep(
    table="channel_verifications",
    key=KeyType.BIGINT,
    order="channel_id",
    identity="channel_id",
    chosen="t.expires_at < :cutoff",
    since="t.expires_at",
)
# The longest window is a day.
OLD_COUNTS = Sweep(
    table="sending_counts",
    key=KeyType.UUID,
    order="subject",
    identity="subject",
    chosen="t.began_at < :cutoff",
    since="t.began_at",
)
OLD_ADDRESSES = Sweep(
    table="recipient_channels",
    key=KeyType.BIGINT,
    chosen="t.retired_at < :cutoff AND t.target <> ''",
    sets="target = '', target_meta = '{}', secrets = '{}', enabled = false",
    since="t.retired_at",
)
# Shipped profiles have a key, and the name of a group.
OLD_PROFILES = Sweep(
    table="recipient_profiles",
    key=KeyType.BIGINT,
    chosen="t.retired_at < :cutoff AND t.key IS NULL AND t.name <> ''",
    sets="name = '', device_id = NULL",
    since="t.retired_at",
)


_KEPT = f"""
    SELECT FROM notifications t WHERE {_IS_LIVE} AND t.id >= '{{first}}' AND t.id < '{{last}}'
    UNION ALL
    SELECT FROM dead_letters d
     WHERE {_OPEN} AND d.notification_id >= '{{first}}' AND d.notification_id < '{{last}}'
    UNION ALL SELECT FROM actions a WHERE a.due_at IS NOT NULL AND a.status = 'RUNNING' AND a.id < '{{last}}'
"""
_COUNTED = """
    SELECT date_trunc('month', t.created_at AT TIME ZONE 'UTC')::date AS month, t.notification_type, t.status,
           count(*) AS notifications, sum(t.attempts) AS attempts
      FROM {table} t GROUP BY 1, 2, 3
"""
_ADD_COUNTS = """
    INSERT INTO notification_counts (month, notification_type, status, notifications, attempts) {counted}
        ON CONFLICT (month, notification_type, status) DO UPDATE
       SET notifications = notification_counts.notifications + excluded.notifications,
           attempts = notification_counts.attempts + excluded.attempts
"""
# Counting a month takes seconds, so it is done before the month is locked, and the numbers become part of a statement.
# Nothing is counted later, because a month that has ended gets no rows, and its rows change no more. If a second run
# forgets and counts single rows of the month meanwhile, the month is not dropped.
_LAST_WORDS = f"""
    SELECT 'VALUES ' || string_agg(
               format('(%L::date, %L, %L, %s, %s)', month, notification_type, status, notifications, attempts), ', ')
      FROM ({_COUNTED}) AS counted HAVING count(*) > 0
"""
_OPEN_FOR_NOTIFICATION = f"EXISTS (SELECT FROM dead_letters d WHERE d.notification_id = t.notification_id AND {_OPEN})"
OLD_MONTHS_OF_ATTEMPTS = OldMonths(
    ATTEMPTS,
    _KEPT,
    Sweep(
        table=ATTEMPTS.name,
        key=KeyType.UUID,
        order="notification_id",
        identity="notification_id",
        chosen=f"t.at < :cutoff AND NOT EXISTS ({_OF_LIVE}) AND NOT {_OPEN_FOR_NOTIFICATION}",
        since="t.at",
    ),
)
OLD_MONTHS_OF_NOTIFICATIONS = OldMonths(
    NOTIFICATIONS,
    _KEPT,
    Sweep(
        table=NOTIFICATIONS.name,
        key=KeyType.UUID,
        chosen=f"t.created_at < :cutoff AND NOT {MAY_BE_SENT} AND NOT {_OPEN_DEAD_LETTER}",
        returned="t.created_at, t.notification_type, t.status, t.attempts",
        then=_ADD_COUNTS.format(counted=_COUNTED.format(table="changed")),
    ),
    _LAST_WORDS,
    _ADD_COUNTS,
    "SELECT coalesce(sum(notifications), 0)::text FROM notification_counts WHERE month = '{month}'",
)

OLD_MESSAGES: Mapping[str, tuple[Part, ...]] = {
    # Dead letters first, because what they are about is forgotten only after them.
    "dead_letters": (OLD_DEAD_LETTERS,),
    "keys": (OLD_KEYS, OLD_CODES, OLD_COUNTS),
    "messages": (OLD_WORDS, STRAY_WORDS, OLD_VARIABLES, WORDS_OF_CLOSED, VARIABLES_OF_CLOSED, OLD_RECORDED),
    "in_app": (OLD_IN_APP,),
    "addresses": (OLD_ADDRESSES, OLD_PROFILES),
    "attempts": (OLD_MONTHS_OF_ATTEMPTS,),
    "notifications": (OLD_MONTHS_OF_NOTIFICATIONS,),
    "actions": (OLD_ACTIONS,),
}
"""By kind."""
