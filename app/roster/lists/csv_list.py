"""Cuts a CSV list at the ends of its lines, and parses the pieces.

Each line is a row. A field in quotes can hold a delimiter or quotes, but no line end, because no column allows one. So
an open quote spoils its own line, and not all that follow.
"""

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from app.roster.kinds.kind import ListDeclaration, ListSource
from app.roster.lists.copy_rows import (
    MadeRecord,
    ParsedPiece,
    RawPiece,
    RawRecord,
    RowWriter,
    parsed_piece,
)
from app.roster.lists.csv_header import CsvHeader
from app.roster.lists.field_values import joined_place
from app.roster.lists.list_refused import FlawedRow, ListRefused, Refusal, RowFlaw
from app.roster.lists.reading_rules import ReadingRules


@dataclass(frozen=True)
class CsvList:
    source: ListSource
    declaration: ListDeclaration
    rules: ReadingRules
    header: CsvHeader

    repeated_field = "alias"

    def cut(self, chunks: Iterator[bytes]) -> Iterator[RawPiece]:
        """Without the line of the header, which has been read from `chunks` before."""
        buffer, line = bytearray(), 2
        for chunk in chunks:
            buffer += chunk
            if len(buffer) < self.rules.piece_bytes:
                continue
            if end := buffer.rfind(b"\n") + 1:
                yield RawPiece(bytes(buffer[:end]), line)
                line += buffer.count(b"\n", 0, end)
                del buffer[:end]
            elif len(buffer) > self.rules.limits.record_bytes + self.rules.piece_bytes:
                raise ListRefused(Refusal.MALFORMED, f"Line {line} is far too long. Lines have to end in LF or CRLF.")
        if buffer:
            self._check_end(bytes(buffer))
            yield RawPiece(bytes(buffer), line)

    def _check_end(self, rest: bytes) -> None:
        last = rest.rstrip(b"\r\n").rpartition(b"\n")[2]
        try:
            self._fields(last.decode())
        except FlawedRow as flaw:
            raise ListRefused(
                Refusal.MALFORMED, "The CSV was cut off: its last line has an open quote. Have it made once more."
            ) from flaw

    def parse(self, piece: RawPiece) -> ParsedPiece:
        flawed: dict[int, FlawedRow] = {}
        writer = RowWriter(self.source, self.declaration, self.rules)
        made = writer.write(self._records(piece, flawed), flawed)
        return parsed_piece(made, _key, flawed, lambda positions: self.lines_of(piece, positions))

    def _records(self, piece: RawPiece, flawed: dict[int, FlawedRow]) -> Iterator[RawRecord]:
        blank = f"{self.header.delimiter} \r\t"
        for position, line in enumerate(piece.data.decode().split("\n")):
            if not line.strip(blank):
                continue
            try:
                fields = self._fields(line.removesuffix("\r"))
            except FlawedRow as flaw:
                flawed[position] = flaw
            else:
                aliases = ((None, ((fields[self.header.alias],),)),)
                yield RawRecord(position, fields[self.header.identifier], self._texts(fields), aliases)

    def _fields(self, line: str) -> list[str]:
        delimiter = self.header.delimiter
        fields = _quoted_fields(line, delimiter) if '"' in line else line.split(delimiter)
        if len(fields) != self.header.width:
            raise FlawedRow(RowFlaw.FIELD_COUNT, "")
        return fields

    def _texts(self, fields: list[str]) -> list[str | None]:
        return [
            None if first is None else fields[first] if second is None else joined_place(fields[first], fields[second])
            for first, second in self.header.columns
        ]

    def lines_of(self, piece: RawPiece, positions: list[int]) -> list[int]:
        return [piece.first_line + position for position in positions]


def _quoted_fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error:
        raise FlawedRow(RowFlaw.QUOTES, "") from None


def _key(record: MadeRecord) -> int:
    """Two different pairs have the same key once in 10,000,000 lists of 1,500,000 lines."""
    (row,) = record.rows
    signature = row.rpartition("\t")[2]
    return (
        int.from_bytes(hashlib.blake2b(f"{record.identifier}\t{signature}".encode(), digest_size=8).digest(), "big")
        or 1
    )
