"""What a year of tasks leaves in the database, with retention every night and without; and how long a night takes."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app.db.bites import AIM_MS
from app.db.database import Database
from app.db.months import OldMonths, drop_month, partitions
from app.delivery.service import MONTHLY, OLD_MESSAGES
from app.privacy.service import KINDS, RetentionRun
from app.settings.settings import Settings
from benchmarks import simulated_year
from benchmarks.attempts import keeping
from benchmarks.bench import SECRET, Bench, Connection, fetch, run, say
from benchmarks.figures import number, percentile
from benchmarks.report import Row, Section

KEPT, FORGOTTEN, NIGHT, FLOOR = "retention_kept", "retention_forgotten", "retention_night", "retention_floor"
A_DAY = 100_000
VACUUM_EVERY = 7
GOAL_MS = 100.0
TITLE = (
    f"retention: GB of each table after a year at {A_DAY:,} tasks a day, extrapolated from a smaller year; floor: the"
    " same year without retention; for the rest: time, and the same rows with one plain statement as the floor"
)
SIZES = """
SELECT name, sum(pg_total_relation_size(part.relid))::bigint, sum(greatest(c.reltuples, 0))::bigint
FROM unnest(%s::text[]) AS name CROSS JOIN LATERAL (
    SELECT relid FROM pg_partition_tree(name::regclass) WHERE isleaf UNION SELECT name::regclass) AS part
JOIN pg_class c ON c.oid = part.relid GROUP BY name
"""
TABLES = (
    "tasks",
    "offers",
    "actions",
    "notifications",
    "notification_attempts",
    "dead_letters",
    "in_app_messages",
    "action_events",
    "audit_entries",
    "notification_counts",
)
Sizes = dict[str, tuple[int, int]]


def measure(bench: Bench) -> Section:
    days, a_day = bench.size(365, 20), bench.size(100, 10)
    factor = A_DAY / a_day
    kept, forgotten, nights = _year(bench, days, a_day)
    rows = [_size_row(table, kept, forgotten, factor) for table in TABLES if kept[table][0] > 100_000]
    rows.append(_size_row("all tables together", _summed(kept), _summed(forgotten), factor))
    notes = [
        f"{days} days of {a_day} tasks, each with 2 offers, {simulated_year.MESSAGES} actions, notifications and"
        f" attempts, 1 message in the app; 1 of 200 notifications is a dead letter. Sizes times {number(factor)}. The"
        " settings are the defaults. Vacuum ran once in a simulated week.",
        f"Nights of that year: median {percentile(nights.times, 0.5):.2f} s, longest {max(nights.times):.2f} s,"
        f" mostly the fixed costs of looking. {nights.months} months were dropped and {nights.rows:,} rows forgotten in"
        f" {nights.bites:,} bites; the longest bite took {nights.longest_ms:.0f} ms.",
    ]
    with keeping(lambda: Section("retention", TITLE, rows, notes)):
        night = _night(bench, bench.size(10_000, 200))
    rows += night.rows
    notes.append(
        f"A night: all that falls due from a day of {night.tasks:,} tasks, times {number(A_DAY / night.tasks)}."
        f" Bites aim at {AIM_MS:.0f} ms, and PostgreSQL ends them at 80 ms. The floor holds its locks all the time."
    )
    bench.drop(KEPT, FORGOTTEN, NIGHT, FLOOR)
    return Section("retention", TITLE, rows, notes)


# ---- a year ----


@dataclass
class Nights:
    times: list[float]
    rows: int = 0
    bites: int = 0
    months: int = 0
    longest_ms: float = 0.0

    def add(self, done: list[Any], took_s: float) -> None:
        self.times.append(took_s)
        for one in done:
            self.rows += one.rows if not one.months else 0
            self.bites += one.bites
            self.months += len(one.months)
            self.longest_ms = max(self.longest_ms, one.longest_ms)


def _year(bench: Bench, days: int, a_day: int) -> tuple[Sizes, Sizes, Nights]:
    now = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first, nights = now - timedelta(days=days), Nights([])
    for database in (KEPT, FORGOTTEN):
        simulated_year.create(bench, database, first.date(), now.date())
    say(f"retention: {days} nights of {a_day} tasks")
    with bench.connect(KEPT) as kept, bench.connect(FORGOTTEN) as forgotten, bench.database(FORGOTTEN) as db:
        for day in range(days):
            begin = first + timedelta(days=day)
            for conn in (kept, forgotten):
                simulated_year.add_day(conn, begin, a_day, day)
            began = time.perf_counter()
            done = _run(bench, db, begin + timedelta(days=1)).forget(list(KINDS))
            nights.add(done, time.perf_counter() - began)
            if day % VACUUM_EVERY == 0:
                run(forgotten, "VACUUM ANALYZE")
        sizes: list[Sizes] = []
        for conn in (kept, forgotten):
            run(conn, "VACUUM ANALYZE")
            sizes.append({name: (size, rows) for name, size, rows in fetch(conn, SIZES, [list(TABLES)])})
    nights.times.sort()
    return sizes[0], sizes[1], nights


def _run(bench: Bench, db: Database, now: datetime) -> RetentionRun:
    values: dict[str, Any] = {
        "database_url": bench.url(KEPT),
        "redis_url": bench.redis_url,
        "auth_secret": SECRET,
    }
    return RetentionRun(db, Settings(**values), now, lambda _done, _total, _note: None, lambda: False)


def _summed(sizes: Sizes) -> Sizes:
    total = sum(size for size, _ in sizes.values()), sum(rows for _, rows in sizes.values())
    return {"all tables together": total}


def _size_row(table: str, kept: Sizes, forgotten: Sizes, factor: float) -> Row:
    (size, rows), (size_kept, rows_kept) = forgotten[table], kept[table]
    name = f"{table}: GB, {rows * factor / 1e6:,.0f} of {rows_kept * factor / 1e6:,.0f} million rows"
    return Row(name, size * factor / 1e9, size_kept * factor / 1e9, facts={"rows": rows, "rows_kept": rows_kept})


# ---- a night ----


@dataclass
class Night:
    tasks: int
    rows: list[Row]


PLAIN = {
    "messages": ("notifications", "UPDATE notifications SET recipient = '', subject = '', body = '', metadata = '{}'"),
    "actions": ("actions", "DELETE FROM actions"),
}


def _night(bench: Bench, tasks: int) -> Night:
    """All kinds meet the same day, as each setting is the age of that day."""
    now = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begin = (now.replace(day=1) - timedelta(days=400)).replace(day=1)
    say(f"retention: a night with {tasks:,} tasks")
    for database in (NIGHT, FLOOR):
        simulated_year.create(bench, database, begin.date(), begin.date())
        with bench.connect(database) as conn:
            simulated_year.add_day(conn, begin, tasks, 0)
            run(conn, "VACUUM ANALYZE")
    took: dict[str, float] = {}
    longest_ms, rows = 0.0, list[Row]()
    with bench.connect(FLOOR) as floor, bench.database(NIGHT) as db:
        for kind in [kind for kind in KINDS if kind not in ("notifications", "attempts")]:
            began = time.perf_counter()
            [done] = _run(bench, db, now).forget([kind])
            took[kind] = time.perf_counter() - began
            longest_ms = max(longest_ms, done.longest_ms)
        # A floor for the two kinds with most rows. Its dead letters would forbid to delete actions.
        run(floor, "DELETE FROM dead_letters")
        for kind, (table, statement) in PLAIN.items():
            plain = _timed(floor, statement)
            rows.append(Row(f"{kind}: {table} of {tasks:,} tasks, s", took[kind], plain))
        for table, kind in zip(MONTHLY[::-1], ("attempts", "notifications"), strict=True):
            rows.append(_dropped(db, floor, kind, table.name, tasks))
    whole = sum(took.values()) * A_DAY / tasks
    rows.append(Row(f"a night at {A_DAY:,} tasks a day, s", whole, facts={"by_kind": took}))
    met = None if bench.quick else longest_ms <= GOAL_MS
    rows.append(Row("longest bite, ms", longest_ms, goal=f"≤{GOAL_MS:.0f}", met=met))
    return Night(tasks, rows)


def _dropped(db: Database, floor: Connection, kind: str, table: str, tasks: int) -> Row:
    [old] = OLD_MESSAGES[kind]
    assert isinstance(old, OldMonths)
    with db.reading() as conn:
        [month] = [one for one in partitions(conn, old.table) if one.ends_at < datetime.now(UTC)][:1]
    began = time.perf_counter()
    dropped = drop_month(db, old, month)
    took_s = time.perf_counter() - began
    plain_s = _timed(floor, f"DELETE FROM {table}")
    name = f"{dropped:,} {table.replace('_', ' ')} dropped with their month, s"
    return Row(name, took_s, plain_s)


def _timed(conn: Connection, statement: str) -> float:
    began = time.perf_counter()
    run(conn, statement)
    return time.perf_counter() - began
