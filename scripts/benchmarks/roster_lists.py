"""A run over a list of 1,500,000 elders, of whom none, one in a hundred or a third has changed."""

import csv
import hashlib
import io
import multiprocessing
import os
import resource
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import text

from app.db.database import Database
from app.roster.kinds.kind import ListDeclaration
from app.roster.kinds.known_kinds import kind_named
from app.roster.lists.read_list import read_pieces
from app.roster.lists.reading_rules import ReadingRules
from app.roster.sync.comparison import BEGIN, Rules, begin, compare, copy_list
from app.roster.sync.guards import GuardLimits
from app.roster.sync.whole_run import ListFile, WholeRun
from benchmarks.bench import TIME_ZONE, Bench, Connection, fetch, run, say
from benchmarks.report import Row, Section

DATABASE = "roster"
KIND = kind_named("elders")
ENROLMENT, CLEARANCE = KIND.source.lists
HEADER = "identifier;name;phone;lat;lon;institution;locale"
OPEN = GuardLimits(100, 0, 0, 100, 100, 10_000, 100, 100)
GOAL, GOAL_MB = 1.5, 250.0
PIECE = 1 << 20
TITLE = (
    "roster: a run over a list of {people:,} elders ({megabytes:.0f} MB of CSV) and a second one of a hundredth, s;"
    " floor: COPY, index, comparison and changes of the same rows by plain SQL; rival: the csv module alone"
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
class Night:
    """The archives of one night, and the same rows in the format of COPY."""

    files: dict[str, ListFile]
    copied: Path
    seconds_of_csv: float
    bytes: int


def measure(bench: Bench) -> Section:
    people = bench.size(1_500_000, 2_000)
    bench.create(DATABASE)
    with bench.connect(DATABASE) as conn:
        run(conn, FLOOR_TABLES)
    nights = {share: _night(bench.folder, people, share) for share in (-1, 0, 1, 30)}
    rows: list[Row] = []
    with _long_database(bench.url(DATABASE)) as db:
        for share, night in nights.items():
            name = "first list" if share < 0 else f"{share} % changed"
            say(f"roster: {name}")
            database_s = _database_time(db, night)
            with bench.connect(DATABASE, autocommit=False) as conn:
                floor_s = _floor(conn, night)
            whole_s, mb = _in_a_process(bench, night)
            rows += _rows(name, database_s, floor_s, whole_s, night, mb, bench.quick)
            with bench.connect(DATABASE) as conn:
                run(conn, "VACUUM ANALYZE roster_rows")
                run(conn, "VACUUM ANALYZE floor_rows")
    with bench.connect(DATABASE) as conn:
        sizes = fetch(conn, SIZES.format(type=KIND.document_type))[0]
    notes = ["Table {:.0f} MB, of it indexes {:.0f} MB; changes {:.0f} MB.".format(*sizes)]
    bench.drop(DATABASE)
    return Section("roster", TITLE.format(people=people, megabytes=nights[0].bytes / 1e6), rows, notes)


def _night(folder: Path, people: int, share: int) -> Night:
    files: dict[str, ListFile] = {}
    copied = folder / f"roster-{share}.copy"
    size = 0
    for declaration, wanted in ((ENROLMENT, people), (CLEARANCE, people // 100)):
        lines = "\n".join([HEADER, *_lines(wanted, share), ""]).encode()
        file = folder / f"roster-{share}-{declaration.name}.zip"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("list.csv", lines)
        files[declaration.name] = ListFile(file, hashlib.sha256(file.read_bytes()).digest())
        size += len(lines)
    with copied.open("wb") as out:
        for piece in _pieces(files, ENROLMENT):
            out.write(piece)
    began = time.perf_counter()
    with zipfile.ZipFile(files[ENROLMENT.name].path) as archive, archive.open("list.csv") as member:
        sum(1 for _ in csv.reader(io.TextIOWrapper(member, "utf-8"), delimiter=";"))
    return Night(files, copied, time.perf_counter() - began, size)


def _lines(people: int, share: int) -> Iterator[str]:
    """In another order each night, which must change nothing."""
    numbers = range(people) if share < 0 else range(people - 1, -1, -1)
    for number in numbers:
        night = share if number % 100 < share else 0
        yield (
            f"{_turkish_id(number)};Ayşe Nur Gülten Yıldırımoğlu {number};+90532{night:02}{number % 100_000:05};"
            f"{41 + number % 9973 / 1e5:.6f};{29 + number % 9949 / 1e5:.6f};{1 + number % 81};tr"
        )


def _turkish_id(number: int) -> str:
    digits = [int(digit) for digit in str(100_000_000 + number)]
    digits.append((7 * sum(digits[0::2]) - sum(digits[1::2])) % 10)
    return "".join(map(str, [*digits, sum(digits) % 10]))


def _reading(processes: int) -> ReadingRules:
    return ReadingRules(ZoneInfo(TIME_ZONE), processes=processes)


def _pieces(files: dict[str, ListFile], declaration: ListDeclaration) -> Iterator[bytes]:
    for piece in read_pieces(files[declaration.name].path, KIND.source, declaration, _reading(1)):
        yield piece.copy_text


def _floor(conn: Connection, night: Night) -> float:
    began = time.perf_counter()
    for statement in (*BEGIN, FLOOR_RAW):
        run(conn, statement)
    with night.copied.open("rb") as rows, conn.cursor() as cursor, cursor.copy("COPY raw FROM STDIN") as copy:
        while piece := rows.read(PIECE):
            copy.write(piece)
    for statement in FLOOR:
        run(conn, statement)
    conn.commit()
    seconds = time.perf_counter() - began
    run(conn, "DROP TABLE raw, new_data, changed")
    return seconds


BEGIN_RUN = (
    "INSERT INTO roster_runs (status, started_at, report) VALUES ('SUCCEEDED', clock_timestamp(), '{}') RETURNING id"
)


class _RolledBack(Exception):
    """Ends a transaction whose time was measured."""


def _database_time(db: Database, night: Night) -> float:
    """Of the same transaction without its parsing: the rows of the longer list are copied from a file."""
    short = list(_pieces(night.files, CLEARANCE))
    began = time.perf_counter()
    try:
        with db.transaction() as conn, night.copied.open("rb") as rows:
            begin(conn)
            run_id = conn.execute(text(BEGIN_RUN)).scalar_one()
            copy_list(conn, KIND.source, ENROLMENT, iter(lambda: rows.read(PIECE), b""))
            copy_list(conn, KIND.source, CLEARANCE, short)
            compare(conn, KIND, b"another", run_id, Rules(OPEN, 30), lambda *_: None)
            raise _RolledBack
    except _RolledBack:
        return time.perf_counter() - began


def _in_a_process(bench: Bench, night: Night) -> tuple[float, float]:
    """Seconds, and the most memory in MB of the process that reads and of one that parses."""
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.SimpleQueue()
    process = spawn.Process(target=_work, args=(bench.url(DATABASE), night.files, answers))
    process.start()
    process.join()
    if process.exitcode:
        raise AssertionError(f"the run failed with exit code {process.exitcode}")
    return answers.get()


@contextmanager
def _long_database(url: str) -> Iterator[Database]:
    db = Database(url, pool_size=2, statement_timeout_ms=0, call_limit_s=3600)
    try:
        yield db
    finally:
        db.close()


def _work(url: str, files: dict[str, ListFile], answers: Any) -> None:
    with _long_database(url) as db:
        whole = WholeRun(db, Rules(OPEN, 30), _reading(os.cpu_count() or 1), lambda *_: None)
        began = time.perf_counter()
        report = whole.sync([KIND], {KIND.source.name: files}, dry_run=False)
        seconds = time.perf_counter() - began
    assert report.kinds, report.to_dict()
    kib = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    answers.put((seconds, kib / 1024))


def _rows(
    name: str, database_s: float, floor_s: float, whole_s: float, night: Night, mb: float, quick: bool
) -> list[Row]:
    met = database_s <= GOAL * floor_s
    return [
        Row(f"{name}: database", database_s, floor_s, goal=f"≤{GOAL}x", met=None if quick else met),
        Row(f"{name}: whole run", whole_s, floor_s, night.seconds_of_csv),
        Row(f"{name}: memory, MB", mb, goal=f"≤{GOAL_MB:.0f}", met=None if quick else mb <= GOAL_MB),
    ]


SIZES = """
SELECT pg_total_relation_size('roster_rows_' || {type}) / 1e6, pg_indexes_size('roster_rows_' || {type}) / 1e6,
       pg_total_relation_size('roster_changes') / 1e6
"""
