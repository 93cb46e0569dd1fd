"""A run over a list of 1,500,000 elders, of whom none, one in a hundred or a third has changed."""

import csv
import io
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from app.db.database import Database
from app.roster.kinds.kind import ListDeclaration
from app.roster.lists.read_list import read_pieces
from app.roster.sync.comparison import BEGIN, begin, compare, copy_list
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, Connection, run, say
from benchmarks.report import Row, Section
from benchmarks.roster_files import CLEARANCE, CSV_NAME, ENROLMENT, KIND, Night, in_percent, reading, write_night
from benchmarks.roster_work import RULES, empty_queue, long_database, sizes, whole_run

DATABASE = "roster"
GOAL, GOAL_MB = 1.5, 250.0
TURNS = 2
PIECE = 1 << 20
MEMORY = "Memory is the peak of the process that reads, and that of each process that parses."
TITLE = (
    "roster-runs: a run over a list of {people:,} elders ({megabytes:.0f} MB of CSV) and a second one of a hundredth,"
    " s; floor: COPY, index, comparison and changes of the same rows by plain SQL; rival: the csv module alone"
)

# The least that a hand would write for one list: the same rows, the same hash, the same changelog.
FLOOR_TABLES = """
CREATE TABLE floor_rows (identifier text COLLATE "C" PRIMARY KEY, hash uuid NOT NULL, fields jsonb NOT NULL,
                         aliases jsonb NOT NULL);
CREATE TABLE floor_changes (position bigint PRIMARY KEY, change smallint NOT NULL, identifier text COLLATE "C" NOT NULL,
                            fields jsonb, aliases jsonb);
"""
FLOOR_RAW = """
CREATE TEMPORARY TABLE raw (document text, identifier text COLLATE "C", name text, phone text, locale text, home text,
                            name_lower text, aliases text, signature text)
"""
FLOOR = (
    "CREATE INDEX ON raw (identifier)",
    "ANALYZE raw",
    """
    CREATE TEMPORARY TABLE new_data AS
    SELECT identifier, name, phone, locale, home, aliases,
           md5(identifier || '|' || name_lower || '|' || coalesce(phone, '') || '|' || coalesce(locale, '') || '|'
               || coalesce(home, '') || '|' || signature)::uuid AS hash
      FROM raw
    """,
    "ANALYZE new_data",
    """
    CREATE TEMPORARY TABLE changed AS
    SELECT n.identifier, CASE WHEN t.identifier IS NULL THEN 1 ELSE 2 END AS change, n.hash,
           n.aliases::jsonb AS aliases,
           jsonb_build_object('name', name, 'phone', phone, 'locale', locale, 'home', home) AS fields
      FROM new_data n LEFT JOIN floor_rows t USING (identifier) WHERE t.hash IS DISTINCT FROM n.hash
    UNION ALL
    SELECT t.identifier, 3, NULL, NULL, NULL FROM floor_rows t
     WHERE NOT EXISTS (SELECT FROM new_data n WHERE n.identifier = t.identifier)
    """,
    "INSERT INTO floor_rows SELECT identifier, hash, fields, aliases FROM changed WHERE change = 1",
    """
    UPDATE floor_rows t SET hash = c.hash, fields = c.fields, aliases = c.aliases
      FROM changed c WHERE c.identifier = t.identifier AND c.change = 2
    """,
    "DELETE FROM floor_rows t USING changed c WHERE c.identifier = t.identifier AND c.change = 3",
    """
    INSERT INTO floor_changes
    SELECT (SELECT coalesce(max(position), 0) FROM floor_changes) + row_number() OVER (), change, identifier, fields,
           aliases FROM changed
    """,
)


@dataclass(frozen=True)
class Prepared:
    """A night, and the rows of its longer list in the format of COPY."""

    night: Night
    copied: Path
    seconds_of_csv: float


def measure(bench: Bench) -> Section:
    people = bench.size(1_500_000, 2_000)
    bench.create(DATABASE)
    with bench.connect(DATABASE) as conn:
        run(conn, FLOOR_TABLES)
    rows: list[Row] = []
    notes: list[str] = []
    size = 0

    def section() -> Section:
        return Section("roster-runs", TITLE.format(people=people, megabytes=size / 1e6), rows, [*notes, MEMORY])

    with keeping(section):
        for name, share in (("first list", 0), ("0 % changed", 0), ("1 % changed", 1), ("30 % changed", 30)):
            say(f"roster: {name}")
            # The order of another night must change nothing.
            backwards = name != "first list"
            prepared = _prepare(write_night(bench.folder, "night", people, in_percent(share), backwards=backwards))
            size = prepared.night.bytes
            database_s, floor_s = _in_turns(bench, prepared)
            whole_s, mb = whole_run(bench, DATABASE, prepared.night)
            rows += _rows(name, database_s, floor_s, whole_s, prepared.seconds_of_csv, mb, bench.quick)
            with bench.connect(DATABASE) as conn:
                empty_queue(conn)
                _vacuum(conn)
                table, indexes, changes, _ = sizes(conn)
            notes.append(f"{name}: rows {table:.0f} MB, their index {indexes:.0f} MB, changes {changes:.0f} MB.")
    bench.drop(DATABASE)
    return section()


def _prepare(night: Night) -> Prepared:
    archive = night.files[ENROLMENT.name].path
    copied = archive.with_suffix(".copy")
    with copied.open("wb") as out:
        for piece in _pieces(night, ENROLMENT):
            out.write(piece)
    began = time.perf_counter()
    with zipfile.ZipFile(archive) as opened, opened.open(CSV_NAME) as member:
        sum(1 for _ in csv.reader(io.TextIOWrapper(member, "utf-8"), delimiter=";"))
    return Prepared(night, copied, time.perf_counter() - began)


def _pieces(night: Night, declaration: ListDeclaration) -> Iterator[bytes]:
    for piece in read_pieces(night.files[declaration.name].path, KIND.source, declaration, reading(1)):
        yield piece.copy_text


def _in_turns(bench: Bench, prepared: Prepared) -> tuple[float, float]:
    """The better of the turns of each: noise only adds."""
    ours: list[float] = []
    floor: list[float] = []
    with long_database(bench.url(DATABASE)) as db, bench.connect(DATABASE) as maintenance:
        for turn in range(TURNS):
            ours.append(_database_time(db, prepared))
            with bench.connect(DATABASE, autocommit=False) as conn:
                floor.append(_floor(conn, prepared))
                conn.commit() if turn == TURNS - 1 else conn.rollback()
            _vacuum(maintenance)
    return min(ours), min(floor)


def _vacuum(conn: Connection) -> None:
    """What a transaction that was rolled back has left is no part of the next one."""
    run(conn, "VACUUM ANALYZE roster_rows, roster_to_apply, floor_rows")


def _floor(conn: Connection, prepared: Prepared) -> float:
    began = time.perf_counter()
    for statement in (*BEGIN, FLOOR_RAW):
        run(conn, statement)
    with prepared.copied.open("rb") as rows, conn.cursor() as cursor, cursor.copy("COPY raw FROM STDIN") as copy:
        while piece := rows.read(PIECE):
            copy.write(piece)
    for statement in FLOOR:
        run(conn, statement)
    return time.perf_counter() - began


BEGIN_RUN = (
    "INSERT INTO roster_runs (status, started_at, report) VALUES ('SUCCEEDED', clock_timestamp(), '{}') RETURNING id"
)


class _RolledBack(Exception):
    """Ends a transaction whose time was measured."""


def _database_time(db: Database, prepared: Prepared) -> float:
    """Of the same transaction without its parsing: the rows of the longer list are copied from a file."""
    short = list(_pieces(prepared.night, CLEARANCE))
    seconds = 0.0
    try:
        with db.transaction() as conn, prepared.copied.open("rb") as rows:
            began = time.perf_counter()
            begin(conn)
            run_id = conn.execute(text(BEGIN_RUN)).scalar_one()
            copy_list(conn, KIND.source, ENROLMENT, iter(lambda: rows.read(PIECE), b""))
            copy_list(conn, KIND.source, CLEARANCE, short)
            compare(conn, KIND, b"another", run_id, RULES, lambda *_: None)
            seconds = time.perf_counter() - began
            raise _RolledBack
    except _RolledBack:
        return seconds


def _rows(
    name: str, database_s: float, floor_s: float, whole_s: float, csv_s: float, mb: float, quick: bool
) -> list[Row]:
    met = database_s <= GOAL * floor_s
    return [
        Row(f"{name}: database", database_s, floor_s, goal=f"≤{GOAL}x", met=None if quick else met),
        Row(f"{name}: whole run", whole_s, floor_s, csv_s),
        Row(f"{name}: memory, MB", mb, goal=f"≤{GOAL_MB:.0f}", met=None if quick else mb <= GOAL_MB),
    ]
