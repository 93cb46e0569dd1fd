"""What backends of PostgreSQL wait for, by samples of pg_stat_activity."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.bench import Bench, fetch

EVERY_S = 0.01
STATES = """
SELECT CASE WHEN state = 'active' THEN coalesce(wait_event_type || ':' || wait_event, 'run, or wait for a processor')
            WHEN state LIKE 'idle in transaction%%' THEN 'wait for the api inside a transaction'
            ELSE 'idle' END, count(*)
FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid() AND backend_type = 'client backend' GROUP BY 1
"""


@contextmanager
def sampled(bench: Bench, database: str) -> Iterator[Counter[str]]:
    """Backends by what they did, summed over the samples. Complete when the block has ended."""
    found: Counter[str] = Counter()
    over = threading.Event()

    def sample() -> None:
        with bench.connect("maintenance") as conn:
            while not over.wait(EVERY_S):
                found.update(dict(fetch(conn, STATES, [database])))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def shares(found: Counter[str], least: float = 0.01) -> list[tuple[str, float]]:
    """Of the samples in which a backend was not idle, most frequent first. Rare ones together."""
    busy = {name: n for name, n in found.items() if name != "idle"}
    every = sum(busy.values())
    large = sorted(((name, n / every) for name, n in busy.items() if n >= least * every), key=lambda one: -one[1])
    rest = 1 - sum(share for _, share in large) if every else 0.0
    return [*large, ("other", rest)] if rest >= 0.001 else large
