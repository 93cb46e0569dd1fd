"""Notifications for workers to carry, and what became of them."""

import time
from dataclasses import dataclass

from app.db.wake import WAKE_CHANNEL
from benchmarks.bench import Bench, Connection, fetch, run
from benchmarks.roles import eventually

SUBJECT = "Yardım istendi"
BODY = "Ahmet yola çıktı! Yaklaşık sekiz dakika sonra yanınızda olacak."

FILL = """
WITH made AS MATERIALIZED (SELECT gen_random_uuid() AS id FROM generate_series(1, %(messages)s))
INSERT INTO notifications (id, notification_type, recipient, subject, body, metadata)
SELECT id, %(type)s, %(recipient)s, %(subject)s, %(body)s,
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
class Emptied:
    began: float
    """When they could be taken."""
    first: float
    last: float
    """When the first and the last of them were recorded."""


def fill(conn: Connection, type_: str, recipient: str, messages: int) -> None:
    values = {"type": type_, "recipient": recipient, "messages": messages, "subject": SUBJECT, "body": BODY}
    run(conn, FILL, values)


def refill(conn: Connection, messages: int) -> float:
    """New ones in place of the old; says when they were there to be taken."""
    run(conn, "TRUNCATE notifications CASCADE")
    with conn.transaction():
        fill(conn, "SMS", "+905550000000", messages)
        run(conn, "SELECT pg_notify(%s, 'SMS')", [WAKE_CHANNEL])
    return time.time()


def emptied(bench: Bench, database: str, messages: int) -> Emptied:
    """Has those who wait for messages carry so many of them."""
    with bench.connect(database) as conn:
        began = refill(conn, messages)
        return wait_until_empty(conn, messages, began)


def wait_until_empty(conn: Connection, messages: int, began: float = 0.0) -> Emptied:
    eventually(lambda: not fetch(conn, LIVE)[0][0], patience_s=300, nap_s=0.1)
    sent, tried, first, last = fetch(conn, SENT)[0]
    if (sent, tried) != (messages, messages):
        raise AssertionError(f"of {messages} messages {sent} are sent, and {tried} tries are written down")
    return Emptied(began, first, last)
