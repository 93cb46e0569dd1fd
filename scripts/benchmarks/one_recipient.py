"""What pushes to others wait while many to one person are waiting."""

import time
from collections.abc import Sequence

from app.db.wake import WAKE_CHANNEL
from benchmarks import backlog, roles
from benchmarks.bench import Bench, Connection, fetch, say
from benchmarks.figures import Spread, spread
from benchmarks.provider import Behaviour
from benchmarks.report import Row
from benchmarks.stand_in import StandIn, stand_in

DATABASE = "one_recipient"
LATENCY_S = 0.050
EVERY_S = 0.1
GOAL_MS = 1_000.0
PATIENCE_S = 120.0

PEOPLE = """
WITH made AS (
    INSERT INTO users (role, name) SELECT 'ELDER', 'Ayşe ' || n FROM generate_series(1, %s) AS n RETURNING id
), phones AS (
    INSERT INTO devices (device_id, user_id, token, platform, address_kind)
    SELECT 'phone-' || id || '-' || n, id, 'token-' || id || '-' || n, 'ANDROID', 'TOKEN'
      FROM made CROSS JOIN generate_series(1, %s) AS n
)
SELECT id FROM made ORDER BY id
"""
PUSHES = """
WITH made AS MATERIALIZED (SELECT gen_random_uuid() AS id FROM generate_series(1, %(number)s)), written AS (
    INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority, metadata)
    SELECT id, 'PUSH', 'user:' || %(person)s, %(person)s, %(subject)s, %(body)s, 'HIGH',
           jsonb_build_object('data', jsonb_build_object('notificationId', id))
      FROM made RETURNING id
)
SELECT id::text, pg_notify(%(channel)s, 'PUSH') FROM written
"""
LIVE = "SELECT EXISTS (SELECT FROM notifications WHERE finished_at IS NULL AND recipient_user_id = %s)"


def measure_rows(bench: Bench) -> list[Row]:
    messages, phones = bench.size(1_500, 100), 10
    bench.create(DATABASE)
    with bench.connect(DATABASE) as conn, bench.redis(), stand_in(bench) as provider:
        provider.behave(PUSH=Behaviour(latency_s=LATENCY_S))
        [crowded] = [row[0] for row in fetch(conn, PEOPLE, [1, 1])]
        [with_phones] = [row[0] for row in fetch(conn, PEOPLE, [1, phones])]
        others = [row[0] for row in fetch(conn, PEOPLE, [50, 1])]
        with roles.role(bench, "delivery", DATABASE, **provider.settings):
            alone = _waits(conn, provider, others, others[0], 0, bench.size(50, 10))
            behind = _waits(conn, provider, others, crowded, messages)
            behind_phones = _waits(conn, provider, others, with_phones, messages // phones)
    bench.drop(DATABASE)
    return [
        Row("a push, nobody else's waiting", alone),
        _row(bench, f"a push beside {messages:,} to another person", behind),
        _row(bench, f"a push beside {messages // phones:,} to another person with {phones} phones", behind_phones),
    ]


def _row(bench: Bench, name: str, found: Spread) -> Row:
    return Row(name, found, goal=f"p99 <{GOAL_MS / 1e3:.0f} s", met=None if bench.quick else found.p99 < GOAL_MS)


def _waits(
    conn: Connection, provider: StandIn, others: Sequence[int], person: int, messages: int, least: int = 1
) -> Spread:
    """From the commit of a push until it reaches the provider, one after the other until all `messages` to the person
    are sent; at least so many."""
    say(f"hostile: {messages:,} messages to one person")
    provider.forget()
    _push(conn, person, messages)
    committed: dict[str, float] = {}
    number = 0
    while number < least or fetch(conn, LIVE, [person])[0][0]:
        [id_] = _push(conn, others[number % len(others)], 1)
        committed[id_] = time.time()
        number += 1
        time.sleep(EVERY_S)
    roles.eventually(lambda: committed.keys() <= dict(provider.request_logs()["PUSH"].tried).keys(), PATIENCE_S)
    tried = dict(reversed(provider.request_logs()["PUSH"].tried))
    return spread([(tried[id_] - at) * 1e3 for id_, at in committed.items()])


def _push(conn: Connection, person: int, number: int) -> list[str]:
    texts = {"subject": backlog.SUBJECT, "body": backlog.BODY, "channel": WAKE_CHANNEL}
    rows = fetch(conn, PUSHES, {"number": number, "person": person, **texts})
    return [row[0] for row in rows]
