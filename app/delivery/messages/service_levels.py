"""Measures the service levels of delivery over the notifications of the last hour."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, text

from app.foundation.ids import earliest_id

WINDOW = timedelta(hours=1)
MOST = 20_000
"""Only this many of the newest notifications are measured. That takes milliseconds and is exact enough."""
MOST_OF_ACTIONS = 2_000
"""The same for the messages of actions, each of which is looked up."""


@dataclass(frozen=True)
class ServiceLevels:
    """Rates are shares of the notifications that ended. If none ended, the values are those of a healthy service."""

    p95_s: float
    """The 95th percentile of the time from the creation of a notification until it is sent."""
    success_rate: float
    dlq_rate: float
    """The share of the messages that ended as dead letters, and of the steps and requests that never were messages."""
    critical_exhausted_rate: float
    """The share of urgent notifications that were given up although more retries might have helped."""
    action_p95_s: float
    """The 95th percentile of the time from the request for an action until its last message is sent."""


# Ids increase with time, so the newest notifications are at one end of the primary key.
_MEASURE = text(
    """
    WITH ended AS (
        SELECT id, status, priority, action_id, finished_at,
               extract(epoch FROM finished_at - created_at)::float8 AS took_s
          FROM (SELECT * FROM notifications WHERE id >= :since ORDER BY id DESC LIMIT :most) AS newest
         WHERE status IN ('SENT', 'DEAD', 'EXPIRED')
    ), counted AS (
        SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY took_s) FILTER (WHERE status = 'SENT') AS p95_s,
               count(*)::float8 AS ended,
               count(*) FILTER (WHERE status = 'SENT') AS sent,
               count(*) FILTER (WHERE priority = 'URGENT')::float8 AS critical,
               count(*) FILTER (WHERE priority = 'URGENT' AND status = 'DEAD' AND EXISTS (
                   SELECT FROM dead_letters d WHERE d.notification_id = ended.id AND d.retryable)) AS exhausted
          FROM ended
    ), letters AS (
        SELECT count(*)::float8 AS written, count(*) FILTER (WHERE notification_id IS NULL) AS without_message
          FROM (SELECT notification_id FROM dead_letters WHERE id >= :since ORDER BY id DESC LIMIT :most) AS newest
    ), actions_sent AS (
        SELECT extract(epoch FROM max(ended.finished_at) - a.created_at)::float8 AS took_s
          FROM (SELECT action_id, finished_at FROM ended WHERE status = 'SENT' AND action_id IS NOT NULL
                 ORDER BY id DESC LIMIT :most_of_actions) AS ended
          JOIN actions a ON a.id = ended.action_id
         GROUP BY a.id
    )
    SELECT coalesce(p95_s, 0) AS p95_s, coalesce(sent / nullif(ended, 0), 1) AS success_rate,
           coalesce(written / nullif(ended + without_message, 0), 0) AS dlq_rate,
           coalesce(exhausted / nullif(critical, 0), 0) AS critical_exhausted_rate,
           coalesce((SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY took_s) FROM actions_sent), 0) AS action_p95_s
      FROM counted, letters
    """
)


def measure_service_levels(conn: Connection) -> ServiceLevels:
    now: datetime = conn.execute(text("SELECT clock_timestamp()")).scalar_one()
    values = {"since": earliest_id(now - WINDOW), "most": MOST, "most_of_actions": MOST_OF_ACTIONS}
    row = conn.execute(_MEASURE, values).one()
    return ServiceLevels(row.p95_s, row.success_rate, row.dlq_rate, row.critical_exhausted_rate, row.action_p95_s)
