"""Cuts an XML list into pieces of whole records, and parses each of them alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from xml.etree.ElementTree import Element, ParseError, XMLParser, fromstring
from xml.parsers import expat

from app.roster.kinds.kind import ColumnType, ListDeclaration, ListSource, XmlFormat
from app.roster.lists.copy_rows import (
    MadeRecord,
    ParsedPiece,
    RawAlias,
    RawPiece,
    RawRecord,
    RowWriter,
    more_parts,
    parsed_piece,
)
from app.roster.lists.field_values import joined_place
from app.roster.lists.list_refused import FlawedRow, ListRefused, Refusal, RowFlaw
from app.roster.lists.reading_rules import ReadingRules

_LONGEST_PROLOG = 64 * 1024
_MISC = re.compile(rb"(?:\s|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
_ROOT = re.compile(rb"""<([^\s<>/!?"'=]+)((?:[^<>"']|"[^"<]*"|'[^'<]*')*+)>""")
# What a tag in it does not count: comments, CDATA and instructions, also those whose end is not there yet.
_HIDDEN = rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
# Without hidden parts, the last record ends near the end.
_TAIL_BYTES = 16 * 1024


@dataclass(frozen=True)
class XmlList:
    source: ListSource
    declaration: ListDeclaration
    rules: ReadingRules
    format: XmlFormat

    repeated_field = "identifier"

    def cut(self, chunks: Iterator[bytes]) -> Iterator[RawPiece]:
        """Each piece gets the root element around it. If it parses as content of the root, it has ended there, so by
        induction no mistake in the search for the end of a record can change what is read."""
        text = b""
        while len(text) < _LONGEST_PROLOG and (chunk := next(chunks, b"")):
            text += chunk
        start, opening, closing = _read_prolog(text)
        line = 1 + text.count(b"\n", 0, start)
        chunks = chain(_slices(text[start:], self.rules.piece_bytes), chunks)
        text = b""
        while True:
            if len(text) >= self.rules.piece_bytes and (end := self._last_end(text)):
                yield RawPiece(b"".join((opening, text[:end], closing)), line)
                line += text.count(b"\n", 0, end)
                text = text[end:]
            elif len(text) > self.rules.limits.record_bytes + self.rules.piece_bytes:
                raise _malformed(f"a <{self.format.record}> is far too long, after line {line}")
            if not (chunk := next(chunks, b"")):
                break
            text += chunk
        # It has the end of the root element itself.
        yield RawPiece(opening + text, line)

    def _last_end(self, buffer: bytes) -> int:
        """Where the last whole record ends; 0 if there is none."""
        has_hidden = b"<!" in buffer or b"<?" in buffer
        tail = 0 if has_hidden else max(len(buffer) - _TAIL_BYTES, 0)
        return self._last_end_after(buffer, tail) or (self._last_end_after(buffer, 0) if tail else 0)

    def _last_end_after(self, buffer: bytes, start: int) -> int:
        return max((found.end() for found in self._ends.finditer(buffer, start) if found["record"]), default=0)

    @cached_property
    def _ends(self) -> re.Pattern[bytes]:
        return self._pattern(rb"</(?:[^\s<>/:]+:)?%b\s*>")

    @cached_property
    def _starts(self) -> re.Pattern[bytes]:
        return self._pattern(rb"<(?:[^\s<>/:!?]+:)?%b(?=[\s/>])")

    def _pattern(self, tag: bytes) -> re.Pattern[bytes]:
        name = re.escape(self.format.record.encode())
        return re.compile(_HIDDEN + b"|(?P<record>" + tag % name + b")", re.DOTALL)

    def parse(self, piece: RawPiece) -> ParsedPiece:
        try:
            # The declaration of a DTD is no content of an element, so nothing in a piece can declare an entity.
            root = fromstring(piece.data, XMLParser(encoding="utf-8"))
        except ParseError as error:
            line, _ = error.position
            raise _malformed(f"it cannot be read at line {piece.first_line + line - 1}") from error
        if b"xmlns" in piece.data:
            _without_namespaces(root)
        flawed: dict[int, FlawedRow] = {}
        writer = RowWriter(self.source, self.declaration, self.rules)
        made = writer.write(self._records(root, flawed), flawed)
        return parsed_piece(made, _key, flawed, lambda positions: self.lines_of(piece, positions))

    def _records(self, root: Element, flawed: dict[int, FlawedRow]) -> Iterator[RawRecord]:
        path = self.format.elements["identifier"]
        for position, record in enumerate(root.findall(self.format.record)):
            try:
                aliases = self._aliases(record)
            except FlawedRow as flaw:
                flawed[position] = flaw
            else:
                yield RawRecord(position, record.findtext(path), self._texts(record), aliases)

    @cached_property
    def _paths(self) -> list[tuple[str, str | None]]:
        """For each column its path; for a place two."""
        paths: list[tuple[str, str | None]] = []
        for column in self.source.columns:
            path = self.format.elements.get(column.name, "")
            first, _, second = path.partition(" ")
            paths.append((first, second if column.type is ColumnType.PLACE else None))
        return paths

    def _texts(self, record: Element) -> list[str | None]:
        find = record.findtext
        return [
            find(first) if second is None else joined_place(find(first), find(second)) for first, second in self._paths
        ]

    @cached_property
    def _steps(self) -> tuple[list[str], str]:
        *above, last = self.format.aliases.split("/")
        return above, last

    def _aliases(self, record: Element) -> list[tuple[str | None, list[RawAlias]]]:
        above, last = self._steps
        holders = [record]
        for step in above:
            holders = [found for holder in holders for found in holder.findall(step)]
        found: dict[str | None, list[RawAlias]] = {}
        attribute = self.format.document
        for holder in holders:
            document = None
            if attribute is not None and not (document := (holder.get(attribute) or "").strip()):
                raise FlawedRow(RowFlaw.REQUIRED, attribute)
            listed = found.setdefault(document, [])
            for alias in holder.findall(last):
                listed += self._aliases_in(alias)
        return list(found.items())

    @cached_property
    def _more(self) -> list[str]:
        return [self.format.alias[part] for part in more_parts(self.source)]

    def _aliases_in(self, element: Element) -> list[RawAlias]:
        ended = self.format.alias_ended
        if ended is not None and (element.findtext(ended) or "").strip():
            return []
        path = self.format.alias["alias"]
        names = [element] if path == "." else element.findall(path)
        more = [element.findtext(path) for path in self._more]
        return [(name.text, *more) for name in names]

    def lines_of(self, piece: RawPiece, positions: list[int]) -> list[int]:
        """The parser does not keep lines, so they are counted when a bad row needs one."""
        if not positions:
            return []
        starts = [found.start() for found in self._starts.finditer(piece.data) if found["record"]]
        places = [0, *(starts[position] for position in positions)]
        line, lines = piece.first_line, list[int]()
        for before, at in pairwise(places):
            line += piece.data.count(b"\n", before, at)
            lines.append(line)
        return lines


def _key(record: MadeRecord) -> int:
    # Ten and eleven digits stay different numbers.
    return int(f"1{record.identifier}")


def _slices(text: bytes, size: int) -> Iterator[bytes]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _read_prolog(text: bytes) -> tuple[int, bytes, bytes]:
    """Where the content of the root element begins, and tags to put around a piece of it."""
    misc = _MISC.match(text)
    start = misc.end() if misc else 0
    if text.startswith(b"<!DOCTYPE", start):
        raise ListRefused(Refusal.DTD, "The XML has a DOCTYPE. Lists must not declare entities; send it without that.")
    root = _ROOT.match(text, start)
    if root is None:
        raise _malformed("it does not begin with one element")
    is_empty = root[2].endswith(b"/")
    name, closing = root[1], b"</" + root[1] + b">"
    _check_well_formed(text[: root.end()] + (b"" if is_empty else closing))
    if name.lower() == b"html":
        raise ListRefused(Refusal.HTML, "This is a web page and not a list. Check what was packed.")
    if is_empty:
        raise ListRefused(Refusal.NO_ROWS, "The list is empty. Send the full list.")
    # On one line, so that it does not change the lines of what it stands before.
    return root.end(), b" ".join(root[0].split()), closing


def _check_well_formed(text: bytes) -> None:
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise _malformed(f"it cannot be read at line {error.lineno}") from error


def _without_namespaces(root: Element) -> None:
    for element in root.iter():
        if "}" in element.tag:
            element.tag = element.tag.rpartition("}")[2]


def _malformed(what: str) -> ListRefused:
    return ListRefused(
        Refusal.MALFORMED, f"The XML is not well-formed or was cut off: {what}. Have it made and sent once more."
    )
