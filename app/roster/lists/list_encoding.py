"""Makes UTF-8 of the encodings that lists come in."""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from app.roster.lists.list_refused import ListRefused, Refusal

_TURKISH = "cp1254"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BEGINNING_BYTES = 512
_DECLARED = re.compile(rb"""\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")
_ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "windows-1254": _TURKISH,
    "cp1254": _TURKISH,
    "iso-8859-9": "iso8859_9",
    "latin5": "iso8859_9",
}


def as_utf8(chunks: Iterable[bytes], *, is_xml: bool) -> Iterator[bytes]:
    """A byte order mark decides, then the declaration of an XML, which is UTF-8 without one. A CSV has no declaration:
    it is UTF-8 until the first byte that is not, and if everything before that was ASCII, it is windows-1254."""
    source = iter(chunks)
    first = b""
    while len(first) < _BEGINNING_BYTES and (chunk := next(source, b"")):
        first += chunk
    # A piece of a letter gives no text yet, and an empty chunk would look like the end.
    return filter(None, _decoded(first, chain((first,), source), is_xml))


def _decoded(first: bytes, everything: Iterable[bytes], is_xml: bool) -> Iterator[bytes]:
    if first.startswith(_UTF16):
        return _transcoded(everything, "utf-16")
    if first.startswith(codecs.BOM_UTF8):
        return _utf8(_without_mark(everything), or_turkish=False)
    encoding = _declared_encoding(first) if is_xml else "utf-8"
    return _utf8(everything, or_turkish=not is_xml) if encoding == "utf-8" else _transcoded(everything, encoding)


def _without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    source = iter(chunks)
    yield next(source).removeprefix(codecs.BOM_UTF8)
    yield from source


def _declared_encoding(first: bytes) -> str:
    found = _DECLARED.match(first[:_BEGINNING_BYTES])
    name = found[1].decode().lower() if found else "utf-8"
    if name not in _ENCODINGS:
        raise ListRefused(
            Refusal.ENCODING, "The XML declares an encoding that is not supported. Use UTF-8, UTF-16 or windows-1254."
        )
    return _ENCODINGS[name]


def _transcoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for chunk in chunks:
            yield decoder.decode(chunk).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise _undecodable() from error


def _utf8(chunks: Iterable[bytes], *, or_turkish: bool) -> Iterator[bytes]:
    """Whole letters. Decoding is only a check; the bytes stay as they are."""
    source = iter(chunks)
    decoder = codecs.getincrementaldecoder("utf-8")()
    may_be_turkish, kept = or_turkish, b""
    for chunk in source:
        whole = kept + chunk
        try:
            may_be_turkish = decoder.decode(chunk).isascii() and may_be_turkish
        except UnicodeDecodeError as error:
            if not may_be_turkish or not whole[: error.start].isascii():
                raise _undecodable() from error
            yield from _transcoded(chain((whole,), source), _TURKISH)
            return
        # The beginning of a letter that the chunk has cut.
        kept = decoder.getstate()[0]
        yield whole[: len(whole) - len(kept)]
    if kept and not may_be_turkish:
        raise _undecodable()
    yield from _transcoded((kept,), _TURKISH)


def _undecodable() -> ListRefused:
    return ListRefused(
        Refusal.ENCODING,
        "The list has bytes that are no letters in its encoding. Save it as UTF-8 and send it once more.",
    )
