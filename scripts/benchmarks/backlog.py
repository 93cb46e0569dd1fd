"""Fills the queue with notifications, and waits until the workers have sent them all."""

import time
from dataclasses import dataclass

from app.db.wake import WAKE_CHANNEL
from benchmarks.bench import Bench, Connection, fetch, run
from benchmarks.roles import eventually

SUBJECT = "Yardım istendi"
BODY = "Ahmet yola çıktı! Yaklaşık sekiz dakika sonra yanınızda olacak."

FILL = """
WITH made AS MATERIALIZED (SELECT n, gen_random_uuid() AS id FROM generate_series(1, %(messages)s) AS n)
INSERT INTO notifications (id, notification_type, recipient, subject, body, metadata)
SELECT id, %(type)s, %(recipient)s || CASE WHEN %(differ)s THEN lpad(n::text, 5, '0') ELSE '' END,
       %(subject)s, %(body)s,
       jsonb_build_object('data', jsonb_build_object('notificationId', id))
  FROM made
"""
LIVE = "SELECT EXISTS (SELECT FROM notifications WHERE status IN ('ACCEPTED', 'SENDING', 'RETRYING'))"
SENT = """
SELECT count(*) FILTER (WHERE status = 'SENT'), (SELECT count(*) FROM notification_attempts WHERE outcome = 'SENT'),
       extract(epoch FROM min(finished_at))::float8, extract(epoch FROM max(finished_at))::float8
  FROM notifications
"""


@dataclass(frozen=True)
class Drained:
    began: float
    """When the notifications were committed."""
    first: float
    last: float
    """When the first and the last notification were recorded as sent."""


def fill(conn: Connection, type_: str, recipient: str, messages: int, *, differ: bool = False) -> None:
    """With `differ` each has a recipient of its own, which begins with this text."""
    values = {"type": type_, "recipient": recipient, "messages": messages, "differ": differ}
    values |= {"subject": SUBJECT, "body": BODY}
    run(conn, FILL, values)


def refill(conn: Connection, messages: int, *, differ: bool = True) -> float:
    """Replaces all notifications by new ones. Returns when they were committed."""
    run(conn, "TRUNCATE notifications, notification_attempts, notification_keys, dead_letters")
    with conn.transaction():
        fill(conn, "SMS", "+9055500" if differ else "+905550000000", messages, differ=differ)
        run(conn, "SELECT pg_notify(%s, 'SMS')", [WAKE_CHANNEL])
    return time.time()


def fill_and_drain(bench: Bench, database: str, messages: int, *, differ: bool = True) -> Drained:
    """Needs a running worker."""
    with bench.connect(database) as conn:
        began = refill(conn, messages, differ=differ)
        return wait_until_empty(conn, messages, began)


def wait_until_empty(conn: Connection, messages: int, began: float = 0.0) -> Drained:
    eventually(lambda: not fetch(conn, LIVE)[0][0], patience_s=300, poll_s=0.1)
    sent, tried, first, last = fetch(conn, SENT)[0]
    if (sent, tried) != (messages, messages):
        raise AssertionError(f"of {messages} notifications {sent} are sent, with {tried} recorded attempts")
    return Drained(began, first, last)
