"""Makes lists as publishers send them, and reads them."""

import csv
import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from app.roster.kinds.kind import ListSource
from app.roster.lists.list_refused import BadRow
from app.roster.lists.read_list import read_pieces
from app.roster.lists.reading_rules import ReadingRules

RULES = ReadingRules(ZoneInfo("Europe/Istanbul"))


def turkish_id(number: int) -> str:
    first = [int(digit) for digit in f"{100_000_000 + number:09}"]
    tenth = (7 * sum(first[0::2]) - sum(first[1::2])) % 10
    return "".join(map(str, [*first, tenth, (sum(first) + tenth) % 10]))


def packed(path: Path, content: bytes, name: str = "list.csv") -> Path:
    path.write_bytes(packed_bytes(content, name))
    return path


def packed_bytes(content: bytes, name: str = "list.csv") -> bytes:
    """The same for the same content."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    return file.getvalue()


def line(number: int, *, name: str | None = None, phone: str = "", institution: int = 1001) -> str:
    return f"{turkish_id(number)};{name or f'Öğrenci {number}'};{phone};{institution}"


def packed_students(path: Path, lines: Iterable[str]) -> Path:
    return packed(path, students_csv(lines))


def students_csv(lines: Iterable[str]) -> bytes:
    return "\n".join(["identifier;name;phone;institution", *lines, ""]).encode()


def csv_text(rows: Iterable[Iterable[str]], delimiter: str = ";", line_end: str = "\r\n") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator=line_end).writerows(rows)
    return text.getvalue()


@dataclass(frozen=True)
class ReadList:
    rows: list[tuple[str | None, ...]]
    bad: list[BadRow]
    bad_count: int
    records: int


def read(path: Path, source: ListSource, rules: ReadingRules = RULES, declared: int = 0) -> ReadList:
    pieces = list(read_pieces(path, source, source.lists[declared], rules))
    lines = b"".join(piece.copy_text for piece in pieces).decode().split("\n")
    assert lines.pop() == ""
    assert sum(piece.rows for piece in pieces) == len(lines)
    return ReadList(
        [tuple(_uncopied(value) for value in line.split("\t")) for line in lines],
        [bad for piece in pieces for bad in piece.bad],
        sum(piece.bad_count for piece in pieces),
        sum(piece.records for piece in pieces),
    )


def _uncopied(value: str) -> str | None:
    return None if value == "\\N" else value.replace("\\\\", "\\")
