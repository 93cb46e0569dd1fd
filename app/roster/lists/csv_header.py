"""Reads the line of a CSV that names its columns."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from app.roster.kinds.kind import ColumnType, CsvFormat, ListSource
from app.roster.lists.list_refused import ListRefused, Refusal

_DELIMITERS = ";,\t"
_LONGEST_HEADER = 16 * 1024


@dataclass(frozen=True)
class CsvHeader:
    delimiter: str
    width: int
    identifier: int
    alias: int
    columns: tuple[tuple[int | None, int | None], ...]
    """For each column of the source, the number of its field, or None if it is missing; for a place two."""


def read_header(chunks: Iterator[bytes], source: ListSource, format: CsvFormat) -> tuple[CsvHeader, Iterator[bytes]]:
    """The header, and the chunks after it."""
    read = b""
    while b"\n" not in read and len(read) < _LONGEST_HEADER and (chunk := next(chunks, b"")):
        read += chunk
    line, _, rest = read.partition(b"\n")
    # The messages never name a header, because in a list without a header it is somebody's name.
    return _parse_header(line.decode().rstrip("\r"), source, format), chain((rest,), chunks)


def _parse_header(line: str, source: ListSource, format: CsvFormat) -> CsvHeader:
    delimiter = max(_DELIMITERS, key=line.count)
    try:
        names = [_folded(name) for name in next(csv.reader([line], delimiter=delimiter, strict=True), list[str]())]
    except csv.Error as error:
        raise _wrong_header("has quotes that do not fit together", format) from error
    places = _places(names, source, format)
    missing = [name for name in ("identifier", "alias") if name not in places]
    missing += [column.name for column in source.columns if column.required and column.name not in places]
    for column in source.columns:
        if column.type is ColumnType.PLACE and (f"{column.name} " in places) != (column.name in places):
            missing.append(column.name)
    if missing:
        raise _wrong_header(f"does not name: {', '.join(missing)}", format)
    columns = tuple((places.get(column.name), places.get(f"{column.name} ")) for column in source.columns)
    return CsvHeader(delimiter, len(names), places["identifier"], places["alias"], columns)


def _places(names: list[str], source: ListSource, format: CsvFormat) -> dict[str, int]:
    """The number of the field by column. The longitude of a place has the name of the column and a blank."""
    known = dict(_known(source, format))
    places: dict[str, int] = {}
    for number, name in enumerate(names):
        column = known.get(name)
        if column is None:
            raise _wrong_header(f"has an unknown name for column {number + 1}", format)
        if column in places:
            raise _wrong_header(f"names column {places[column] + 1} once more as column {number + 1}", format)
        places[column] = number
    return places


def _known(source: ListSource, format: CsvFormat) -> Iterator[tuple[str, str]]:
    pairs = {column.name for column in source.columns if column.type is ColumnType.PLACE}
    for column, headers in format.headers.items():
        for number, header in enumerate(headers):
            yield header, f"{column} " if column in pairs and number % 2 else column


def _folded(name: str) -> str:
    return name.strip().replace("İ", "i").lower()


def _wrong_header(what: str, format: CsvFormat) -> ListRefused:
    return ListRefused(
        Refusal.HEADERS,
        f"The first line of the CSV {what}. It has to name the columns: {_accepted(format.headers)}.",
    )


def _accepted(headers: Mapping[str, tuple[str, ...]]) -> str:
    return ", ".join("/".join(names) for names in headers.values())
