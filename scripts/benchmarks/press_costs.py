"""What presses cost the stores: WAL, commits, and commands of Redis."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.bench import Bench, Connection, fetch, run

WAL = "SELECT pg_current_wal_flush_lsn()::text"
# Exact at once, while pg_stat_wal lags, because backends report to it once in a while.
RECORDS = """
SELECT coalesce(sum(record_size), 0)::bigint, coalesce(sum(fpi_size), 0)::bigint,
       coalesce(sum(count) FILTER (WHERE "resource_manager/record_type" LIKE 'Transaction/COMMIT%%'), 0)::bigint
FROM pg_get_wal_stats(%s, %s, true)
"""
SYNCS = "SELECT wal_sync, wal_sync_time FROM pg_stat_wal"


@dataclass
class Written:
    """Filled when the block ends."""

    records: int = 0
    """Bytes of WAL without page images."""
    page_images: int = 0
    """Bytes. The first change of a page after a checkpoint writes the whole page."""
    commits: int = 0
    redis_calls: Mapping[str, int] = field(default_factory=dict[str, int])


@contextmanager
def written(conn: Connection, redis: Any) -> Iterator[Written]:
    began, calls, found = fetch(conn, WAL)[0][0], _calls(redis), Written()
    yield found
    ended, after = fetch(conn, WAL)[0][0], _calls(redis)
    found.records, found.page_images, found.commits = fetch(conn, RECORDS, [began, ended])[0]
    found.redis_calls = {name: n for name in after if (n := after[name] - calls.get(name, 0)) and name != "info"}


def _calls(redis: Any) -> dict[str, int]:
    return {name.removeprefix("cmdstat_"): one["calls"] for name, one in redis.info("commandstats").items()}


@dataclass
class Syncs:
    times: int = 0
    took_ms: float = 0.0


@contextmanager
def syncs(bench: Bench, database: str) -> Iterator[Syncs]:
    """Counts fsyncs of WAL. The connections that commit have to be opened and closed in the block: they report what is
    left when they are closed."""
    with bench.connect("maintenance") as conn:
        run(conn, f"ALTER DATABASE {database} SET track_wal_io_timing = on")
        before, found = fetch(conn, SYNCS)[0], Syncs()
        try:
            yield found
        finally:
            run(conn, f"ALTER DATABASE {database} RESET track_wal_io_timing")
        after = fetch(conn, SYNCS)[0]
        found.times, found.took_ms = after[0] - before[0], after[1] - before[1]
