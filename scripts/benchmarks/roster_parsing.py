"""How many people a second are read from a list and checked, without a database."""

import csv
import io
import os
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lxml.etree import iterparse

from app.roster.lists.read_list import read_pieces
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.report import Row, Section
from benchmarks.roster_files import CSV_NAME, ENROLMENT, KIND, XML_NAME, csv_lines, reading, write_archive, xml_lines

TURNS = 3
GOAL = 1.3
TITLE = (
    "roster-parsing: {people:,} elders read, checked and written as rows for COPY, people a second; floor: only read,"
    " by the csv module or lxml.iterparse"
)


@dataclass(frozen=True)
class Format:
    name: str
    member: str
    content: Callable[[int], bytes]
    bare: Callable[[Path], int]


def measure(bench: Bench) -> Section:
    people = bench.size(500_000, 50_000)  # Shorter lists are parsed without processes.
    title = TITLE.format(people=people)
    rows: list[Row] = []
    with keeping(lambda: Section("roster-parsing", title, rows)):
        for format in FORMATS:
            rows += _measure(bench, format, people)
    return Section("roster-parsing", title, rows)


def _measure(bench: Bench, format: Format, people: int) -> list[Row]:
    say(f"roster: parsing {format.name}")
    file, cores = bench.folder / f"roster-parsing-{format.name}.zip", os.cpu_count() or 1
    write_archive(file, format.member, format.content(people))
    floor: list[float] = []
    one: list[float] = []
    all_cores: list[float] = []
    for _ in range(1 if bench.quick else TURNS):
        floor.append(_rate(people, lambda: format.bare(file)))
        one.append(_rate(people, lambda: _ours(file, 1)))
        all_cores.append(_rate(people, lambda: _ours(file, cores)))
    file.unlink()
    speed_up = max(all_cores) / max(one)
    return [
        Row(f"{format.name}, one process", max(one), max(floor), more_is_better=True),
        Row(
            f"{format.name}, {cores} processes beside the one that reads",
            max(all_cores),
            max(floor),
            more_is_better=True,
            goal=f"≥{GOAL}x one process",
            met=None if bench.quick else speed_up >= GOAL,
            facts={"speed_up": speed_up},
        ),
    ]


def _rate(people: int, read: Callable[[], int]) -> float:
    began = time.perf_counter()
    found = read()
    seconds = time.perf_counter() - began
    if found != people:
        raise AssertionError(f"{found:,} of {people:,} were read")
    return people / seconds


def _ours(file: Path, processes: int) -> int:
    return sum(piece.records for piece in read_pieces(file, KIND.source, ENROLMENT, reading(processes)))


def _bare_csv(file: Path) -> int:
    with zipfile.ZipFile(file) as archive, archive.open(CSV_NAME) as member:
        return sum(1 for _ in csv.reader(io.TextIOWrapper(member, "utf-8"), delimiter=";")) - 1


def _bare_xml(file: Path) -> int:
    records = 0
    with zipfile.ZipFile(file) as archive, archive.open(XML_NAME) as member:
        for _, element in iterparse(member, tag="elder"):
            records += 1
            element.clear()
            # The list of all that were read would fill the memory.
            while element.getprevious() is not None:
                del element.getparent()[0]
    return records


FORMATS = (Format("CSV", CSV_NAME, csv_lines, _bare_csv), Format("XML", XML_NAME, xml_lines, _bare_xml))
