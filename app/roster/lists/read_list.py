"""Reads one list, and checks all of it. Memory does not grow with the list, but for `SeenRecords`."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from app.roster.kinds.kind import ListDeclaration, ListSource
from app.roster.lists.copy_rows import MOST_BAD_ROWS, ParsedPiece, RawPiece
from app.roster.lists.csv_header import read_header
from app.roster.lists.csv_list import CsvList
from app.roster.lists.list_archive import ListMember, open_member
from app.roster.lists.list_encoding import as_utf8
from app.roster.lists.list_refused import BadRow, ListRefused, Refusal, RowFlaw
from app.roster.lists.parsing_processes import parse_beside, parse_here
from app.roster.lists.reading_rules import ReadingRules
from app.roster.lists.seen_records import SeenRecords

if TYPE_CHECKING:
    from app.roster.lists.xml_list import XmlList


@dataclass(frozen=True)
class ListPiece:
    copy_text: bytes
    """Rows in COPY's text format, in UTF-8."""
    rows: int
    records: int
    """The good ones. A record has a row for each of its documents."""
    bad: list[BadRow]
    """Of all pieces together, the first hundred."""
    bad_count: int


def read_pieces(
    file: Path, source: ListSource, declaration: ListDeclaration, rules: ReadingRules, sha256: bytes | None = None
) -> Generator[ListPiece]:
    """May raise `ListRefused` until its end, and then everything that came before must be rolled back. With processes,
    the thread that takes the first piece has to live until the last."""
    with open_member(file, rules.limits, rules.piece_bytes, sha256) as member:
        format, pieces = _cut(member, source, declaration, rules)
        is_small = rules.processes < 2 or member.size <= rules.small_bytes
        parsed = parse_here(format.parse, pieces) if is_small else parse_beside(format.parse, pieces, rules.processes)
        yield from _Checked(format, rules).pieces(parsed)


def _cut(
    member: ListMember, source: ListSource, declaration: ListDeclaration, rules: ReadingRules
) -> tuple["XmlList | CsvList", Iterator[RawPiece]]:
    chunks = as_utf8(member.chunks, is_xml=member.is_xml)
    if member.is_xml and source.xml:
        # Imported here because the api, which knows the results of runs, would load a parser of XML.
        from app.roster.lists.xml_list import XmlList

        xml = XmlList(source, declaration, rules, source.xml)
        return xml, xml.cut(chunks)
    if not member.is_xml and source.csv:
        header, rest = read_header(chunks, source, source.csv)
        csv = CsvList(source, declaration, rules, header)
        return csv, csv.cut(rest)
    wanted = " or ".join(name for name, one in (("XML", source.xml), ("CSV", source.csv)) if one)
    raise ListRefused(Refusal.MEMBERS, f"The archive of this list has to hold {wanted}.")


@dataclass
class _Checked:
    """Leaves out records that came before, and counts."""

    format: "XmlList | CsvList"
    rules: ReadingRules
    seen: SeenRecords = field(default_factory=SeenRecords)
    records: int = 0
    bad_count: int = 0
    listed: int = 0

    def pieces(self, parsed: Iterator[tuple[RawPiece, ParsedPiece]]) -> Iterator[ListPiece]:
        for raw, piece in parsed:
            repeated = self.seen.repeated(piece.keys)
            bad, copy_text = piece.bad, piece.copy_text
            if repeated:
                lines = self.format.lines_of(raw, [piece.positions[number] for number in repeated])
                bad = bad + [BadRow(line, RowFlaw.DUPLICATE, self.format.repeated_field) for line in lines]
                copy_text = _without(copy_text, piece, repeated)
            yield self._count(piece, len(repeated), sorted(bad, key=lambda row: row.line), copy_text)
        self._require_enough()

    def _count(self, piece: ParsedPiece, repeated: int, bad: list[BadRow], copy_text: bytes) -> ListPiece:
        records = len(piece.keys) - repeated
        bad = bad[: MOST_BAD_ROWS - self.listed]
        self.listed += len(bad)
        self.records += records
        self.bad_count += piece.bad_count + repeated
        return ListPiece(copy_text, copy_text.count(b"\n"), records, bad, piece.bad_count + repeated)

    def _require_enough(self) -> None:
        allowed = max((self.records + self.bad_count) * self.rules.limits.bad_rows_share, 1)
        if self.bad_count > allowed:
            raise ListRefused(
                Refusal.BAD_ROWS,
                f"{self.bad_count:,} of {self.records + self.bad_count:,} rows are bad, and more than"
                f" {self.rules.limits.bad_rows_share:.2%} are not allowed. Correct them at the source, or check"
                " that this is the right list.",
            )
        if not self.records:
            raise ListRefused(Refusal.NO_ROWS, "The list has no rows that can be used. Send the full list.")


def _without(copy_text: bytes, piece: ParsedPiece, repeated: list[int]) -> bytes:
    rows = iter(copy_text.splitlines(keepends=True))
    gone = set(repeated)
    kept: list[bytes] = []
    for number, count in enumerate(piece.row_counts):
        own = [next(rows) for _ in range(count)]
        kept += [] if number in gone else own
    return b"".join(kept)
