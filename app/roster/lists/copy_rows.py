"""Makes rows in the text format of COPY."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from app.roster.kinds.kind import ColumnType, ListDeclaration, ListSource
from app.roster.lists.field_values import (
    LONGEST_ALIAS,
    Check,
    IdentifierCheck,
    TimeCheck,
    check_for,
    check_for_alias,
    plain,
    plain_many,
    turkish_lower,
)
from app.roster.lists.list_refused import BadRow, FlawedRow, RowFlaw
from app.roster.lists.reading_rules import ReadingRules

MOST_BAD_ROWS = 100
_AT_A_TIME = 256
"""So many records are checked together. One bad record makes all of them slow."""
# No value has this character, so it stands for NULL until the backslashes of all values have been doubled.
_NULL = "\0"

RawAlias = tuple[str | None, ...]
"""The texts of an affiliation's parts, without its type. The first is `alias`."""


class RawRecord(NamedTuple):
    """What a parser has found, not checked yet."""

    position: int
    """In the piece."""
    identifier: str | None
    texts: Sequence[str | None]
    aliases: Sequence[tuple[str | None, Sequence[RawAlias]]]
    """For each document."""


class MadeAlias(NamedTuple):
    parts: tuple[str, ...]
    """Without the type; empty if there is none. They decide the order."""
    json: str
    signature: str


class MadeRecord(NamedTuple):
    position: int
    identifier: str
    rows: list[str]


@dataclass(frozen=True)
class RawPiece:
    """Whole records of a list, in UTF-8."""

    data: bytes
    first_line: int


@dataclass
class ParsedPiece:
    """The arrays have one number for each good record."""

    copy_text: bytes = b""
    bad: list[BadRow] = field(default_factory=list[BadRow])
    bad_count: int = 0
    keys: "array[int]" = field(default_factory=lambda: array("Q"))
    """Equal for records of which only the first one may stay."""
    positions: "array[int]" = field(default_factory=lambda: array("L"))
    row_counts: "array[int]" = field(default_factory=lambda: array("L"))


class RowWriter:
    """The columns are: document, identifier, those of the source, the first text column in lower case, the affiliations
    as JSON, and their signature."""

    def __init__(self, source: ListSource, declaration: ListDeclaration, rules: ReadingRules) -> None:
        self._identifier = IdentifierCheck(source.identifier)
        self._columns = [(column, check_for(column, rules)) for column in source.columns]
        self._lower = next(n for n, column in enumerate(source.columns) if column.type is ColumnType.TEXT)
        self._has_documents = source.xml is not None and source.xml.document is not None
        self._type = declaration.alias_type
        self._alias_parts: list[tuple[str, Check | None]] = [("alias", check_for_alias(source.alias_rule))]
        for part in more_parts(source):
            self._alias_parts.append((part, TimeCheck(part, rules.zone) if part in source.alias_times else None))
        places = {part: f"{{{number}}}" for number, (part, _) in enumerate(self._alias_parts)}
        self._template = self._template_of(source, places)
        quoted = self._template_of(source, {part: f'"{place}"' for part, place in places.items()})
        self._only_one = f"[{quoted}]\t{{0}}:{self._type}"

    def _template_of(self, source: ListSource, places: Mapping[str, str]) -> str:
        members = ", ".join(f'"{part}": {places.get(part, _json(self._type))}' for part in source.alias_parts)
        return f"{{{{{members}}}}}"

    def write(self, records: Iterator[RawRecord], flawed: dict[int, FlawedRow]) -> Iterator[MadeRecord]:
        """Those that are good; the others are added to `flawed`."""
        while batch := list(islice(records, _AT_A_TIME)):
            made = self._make_together(batch)
            yield from made if made is not None else self._make_each(batch, flawed)

    def _make_each(self, batch: list[RawRecord], flawed: dict[int, FlawedRow]) -> Iterator[MadeRecord]:
        for record in batch:
            try:
                yield self._make(record)
            except FlawedRow as flaw:
                flawed[record.position] = flaw

    def _make(self, record: RawRecord) -> MadeRecord:
        identifier = self._identifier.one(record.identifier or "")
        values: list[str] = []
        for (column, check), text in zip(self._columns, record.texts, strict=True):
            value = plain(text, column.name, column.longest)
            if column.required and not value:
                raise FlawedRow(RowFlaw.REQUIRED, column.name)
            values.append(check.one(value) if check and value else value)
        made = [(document, [self._alias(raw) for raw in listed]) for document, listed in record.aliases]
        rows = _rows(_shared(identifier, values, turkish_lower(values[self._lower])), made)
        if not rows and not self._has_documents:
            raise FlawedRow(RowFlaw.REQUIRED, "alias")
        return MadeRecord(record.position, identifier, rows)

    def _alias(self, raw: RawAlias) -> MadeAlias:
        parts: list[str] = []
        for (part, check), text in zip(self._alias_parts, raw, strict=True):
            value = plain(text, part, LONGEST_ALIAS)
            parts.append(check.one(value) if check and value else value)
        return self._made(tuple(parts))

    def _made(self, parts: tuple[str, ...]) -> MadeAlias:
        return MadeAlias(parts, self._template.format(*[_json(part) for part in parts]), f"{parts[0]}:{self._type}")

    def _make_together(self, batch: list[RawRecord]) -> list[MadeRecord] | None:
        """None if anything is unusual. Otherwise the same as one by one."""
        identifiers = self._identifier.many([record.identifier or "" for record in batch])
        columns = self._columns_of(batch)
        aliases = self._aliases_of(batch)
        if identifiers is None or columns is None or aliases is None:
            return None
        lower = turkish_lower("\n".join(columns[self._lower])).split("\n")
        nullable = [[value or _NULL for value in column] if "" in column else column for column in (*columns, lower)]
        shared = map("\t".join, zip(identifiers, *nullable, strict=True))
        made: list[MadeRecord] = []
        for record, identifier, values in zip(batch, identifiers, shared, strict=True):
            rows: list[str] = []
            for document, raw in record.aliases:
                if len(raw) == 1:
                    rows.append(f"{document or _NULL}\t{values}\t{self._only_one.format(*next(aliases))}")
                elif raw:
                    listed = _listed([self._made(parts) for parts in islice(aliases, len(raw))])
                    rows.append(f"{document or _NULL}\t{values}\t{listed}")
            if not rows and not self._has_documents:
                return None
            made.append(MadeRecord(record.position, identifier, rows))
        return made

    def _columns_of(self, batch: list[RawRecord]) -> list[list[str]] | None:
        columns: list[list[str]] = []
        texts = zip(*[record.texts for record in batch], strict=True)
        for (column, check), column_texts in zip(self._columns, texts, strict=True):
            values = plain_many(column_texts, column.longest)
            if values is None or (column.required and not all(values)):
                return None
            checked = check.many(values) if check else values
            if checked is None:
                return None
            columns.append(checked)
        return columns

    def _aliases_of(self, batch: list[RawRecord]) -> Iterator[tuple[str, ...]] | None:
        """The parts of all affiliations, one after the other; none of them is empty or needs an escape in JSON."""
        flat = [alias for record in batch for _, listed in record.aliases for alias in listed]
        columns: list[list[str]] = []
        for (_, check), texts in zip(self._alias_parts, zip(*flat, strict=True), strict=False):
            values = plain_many(texts, LONGEST_ALIAS)
            checked = check.many(values) if check and values is not None else values
            joined = "".join(checked or ())
            if checked is None or "" in checked or '"' in joined or "\\" in joined:
                return None
            columns.append(checked)
        return zip(*columns, strict=True)


def more_parts(source: ListSource) -> tuple[str, ...]:
    return tuple(part for part in source.alias_parts if part not in ("alias", "type"))


def parsed_piece(
    made: Iterator[MadeRecord],
    key: Callable[[MadeRecord], int],
    flawed: dict[int, FlawedRow],
    lines_of: Callable[[list[int]], list[int]],
) -> ParsedPiece:
    records = list(made)
    rows = [row for record in records for row in record.rows]
    parsed = ParsedPiece(
        copy_text="\n".join([*rows, ""]).replace("\\", "\\\\").replace(_NULL, "\\N").encode(),
        bad_count=len(flawed),
        keys=array("Q", map(key, records)),
        positions=array("L", [record.position for record in records]),
        row_counts=array("L", [len(record.rows) for record in records]),
    )
    first = sorted(flawed)[:MOST_BAD_ROWS]
    for line, position in zip(lines_of(first), first, strict=True):
        parsed.bad.append(BadRow(line, flawed[position].flaw, flawed[position].field))
    return parsed


def _shared(identifier: str, values: Sequence[str], lower: str) -> str:
    return "\t".join([identifier, *[value or _NULL for value in values], lower or _NULL])


def _rows(shared: str, aliases: Sequence[tuple[str | None, list[MadeAlias]]]) -> list[str]:
    """One for each document that has affiliations."""
    return [f"{document or _NULL}\t{shared}\t{listed}" for document, made in aliases if (listed := _listed(made))]


def _listed(aliases: list[MadeAlias]) -> str:
    if len(aliases) == 1 and (only := aliases[0]).parts[0]:
        return f"[{only.json}]\t{only.signature}"
    if aliases:
        aliases = sorted({alias for alias in aliases if alias.parts[0]})
    if not aliases:
        return ""
    return f"[{', '.join([alias.json for alias in aliases])}]\t{','.join([alias.signature for alias in aliases])}"


def _json(value: str) -> str:
    # Control characters, which would need an escape as well, are refused before.
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if value else "null"
