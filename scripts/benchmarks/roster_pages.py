"""A page of changes among 5,000,000, at the beginning, in the middle and at the end."""

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from app.db.database import Database
from app.roster.contract import ChangesPage, ChangesWindow
from app.roster.service import read_after, read_window
from benchmarks.attempts import keeping
from benchmarks.bench import TIME_ZONE, Bench, Connection, fetch, run, say
from benchmarks.figures import in_turns, spread
from benchmarks.loading import without_indexes
from benchmarks.report import Row, Section
from benchmarks.roster_files import KIND

DATABASE = "roster_pages"
RUNS, RETENTION_DAYS = 25, 30
SIZES = (100, 1_000)
PAGES, PASSES = 50, 6
GOAL_MS = 10.0
ZONE = ZoneInfo(TIME_ZONE)
TITLE = (
    "roster-pages: a page among {changes:,} changes of {runs} runs, ms, p50 / p99, until it is JSON; floor: its rows by"
    " bare psycopg"
)

# A run each day, all of them younger than changes are kept.
CHANGES = f"""
CREATE TABLE bench_runs AS
SELECT n AS id, date_trunc('second', now()) - ({RUNS + 1} - n) * interval '1 day' AS changed_at,
       (n - 1) * {{each}}::bigint AS first FROM generate_series(0, {RUNS}) n;

INSERT INTO roster_runs (id, status, started_at, report) SELECT id, 'SUCCEEDED', changed_at, '{{{{}}}}' FROM bench_runs;

INSERT INTO sync_metadata (document_type, run_id, changed_at, first_position, last_position, rows, removed, report)
SELECT {KIND.document_type}, id, changed_at, greatest(first, 0), first + {{each}}, {{each}}, 0, '{{{{}}}}'
  FROM bench_runs;

INSERT INTO roster_changes (document_type, position, change_type, changed_at, identifier, fields, aliases)
SELECT {KIND.document_type}, first + n, 2, changed_at, (10000000000 + n)::text,
       jsonb_build_object('name', 'Ayşe Nur Gülten Yıldırımoğlu ' || n, 'phone', '+90532' || n, 'locale', 'tr',
                          'home', jsonb_build_object('lat', 41.012345, 'lon', 29.012345)),
       '[{{{{"alias": "34", "type": "ENROLMENT"}}}}]'
  FROM bench_runs CROSS JOIN generate_series(1, {{each}}) n WHERE id > 0;

INSERT INTO roster_states (document_type, last_position, kept_from, rows)
VALUES ({KIND.document_type}, {RUNS} * {{each}}::bigint, 0, {{each}});

DROP TABLE bench_runs;
"""
FLOOR = f"""
SELECT change_type, changed_at, identifier, fields, aliases FROM roster_changes
 WHERE document_type = {KIND.document_type} AND position > %s ORDER BY position LIMIT %s
"""


@dataclass(frozen=True)
class Place:
    number: int
    size: int
    cursor: str
    """Of the end of the page before."""

    @property
    def position(self) -> int:
        return (self.number - 1) * self.size


@dataclass(frozen=True)
class Feed:
    db: Database
    bare: Connection
    since: datetime

    def window(self, place: Place) -> ChangesPage:
        return self.page(place.number, place.size)

    def page(self, number: int, size: int) -> ChangesPage:
        window = ChangesWindow(self.since, None, number, size)
        with self.db.reading() as conn:
            return read_window(conn, KIND, window, RETENTION_DAYS, ZONE)

    def after(self, place: Place) -> ChangesPage:
        with self.db.reading() as conn:
            return read_after(conn, KIND, place.cursor, place.size, ZONE)

    def rows(self, place: Place) -> int:
        return len(fetch(self.bare, FLOOR, [place.position, place.size]))


def measure(bench: Bench) -> Section:
    changes = bench.size(5_000_000, 50_000)
    say(f"roster: writing {changes:,} changes")
    bench.create(DATABASE)
    with bench.connect(DATABASE) as conn:
        with without_indexes(conn, "roster_changes"):
            run(conn, CHANGES.format(each=changes // RUNS))
        run(conn, "VACUUM ANALYZE")
        since = fetch(conn, "SELECT min(changed_at) FROM sync_metadata")[0][0]
    rows: list[Row] = []
    title = TITLE.format(changes=changes, runs=RUNS)
    with (
        keeping(lambda: Section("roster-pages", title, rows)),
        bench.database(DATABASE) as db,
        bench.connect(DATABASE) as bare,
    ):
        feed = Feed(db, bare, since.astimezone(UTC))
        for size in SIZES:
            for name, first in _depths(changes // size, bench.size(PAGES, 5)).items():
                say(f"roster: pages of {size:,}, {name}")
                rows += _measure(feed, name, size, range(first, first + bench.size(PAGES, 5)), bench)
    bench.drop(DATABASE)
    return Section("roster-pages", title, rows)


def _depths(pages: int, measured: int) -> dict[str, int]:
    """The first page that is measured there. The first page of all has none before it, whose cursor is needed."""
    return {"beginning": 2, "middle": pages // 2, "end": pages - measured + 1}


def _measure(feed: Feed, name: str, size: int, numbers: range, bench: Bench) -> list[Row]:
    places = [Place(number, size, feed.page(number - 1, size).next_cursor) for number in numbers]
    if any(feed.window(place).changes != feed.after(place).changes for place in places):
        raise AssertionError("a page by its number is another one than by its cursor")
    implementations = {"by its number": feed.window, "after a cursor": feed.after, "floor": feed.rows}
    samples = in_turns(implementations, places, 1 if bench.quick else PASSES)
    floor = spread(samples.pop("floor"))
    return [
        Row(
            f"{size:,} at the {name}, {how}",
            ours := spread(taken),
            floor,
            goal=f"p99 <{GOAL_MS:.0f} ms",
            met=None if bench.quick else ours.p99 < GOAL_MS,
        )
        for how, taken in samples.items()
    ]
