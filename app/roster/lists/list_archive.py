"""Opens the one member of an archive, and refuses archives that could do harm. Nothing is written to disk."""

import hashlib
import re
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, BinaryIO

from app.roster.lists.list_refused import ListRefused, Refusal
from app.roster.lists.reading_rules import MEGABYTE, ListLimits

_END = b"PK\x05\x06"
_END_BYTES = 22
_LOCATOR_OF_ZIP64 = b"PK\x06\x07"
_LONGEST_COMMENT = 0xFFFF
_LONGEST_DIRECTORY = 4096
"""Of the archive: one member needs 46 bytes, its name and its extra fields."""
_NAME = re.compile(r"[^\x00-\x1f/\\:]{1,200}\.(xml|csv)", re.IGNORECASE)
_ENCRYPTED = 0x1
_HTML = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
# A short text that repeats itself is packed well without being a bomb.
_ALWAYS_ALLOWED_BYTES = MEGABYTE


@dataclass(frozen=True)
class ListMember:
    chunks: Iterator[bytes]
    size: int
    is_xml: bool


@contextmanager
def open_member(
    path: Path, limits: ListLimits, chunk_bytes: int = MEGABYTE, sha256: bytes | None = None
) -> Generator[ListMember]:
    with ExitStack() as stack:
        with _damage_as_refusal():
            file = stack.enter_context(path.open("rb"))
            _check_archive(file, limits)
            if sha256 is not None:
                _check_digest(file, sha256)
            archive = stack.enter_context(zipfile.ZipFile(file))
            member = _only_member(archive, limits)
            opened = stack.enter_context(archive.open(member))
        is_xml = member.filename.lower().endswith(".xml")
        yield ListMember(_chunks(opened, chunk_bytes), member.file_size, is_xml)


def check_archive(path: Path, limits: ListLimits) -> None:
    """Everything that can be told without unpacking."""
    with open_member(path, limits):
        return


def _chunks(opened: IO[bytes], chunk_bytes: int) -> Iterator[bytes]:
    with _damage_as_refusal():
        while chunk := opened.read(chunk_bytes):
            yield chunk


@contextmanager
def _damage_as_refusal() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ListRefused(Refusal.NOT_READABLE, f"The list cannot be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError) as error:
        raise ListRefused(
            Refusal.DAMAGED, "The archive is damaged or was cut off. Have it packed again and sent once more."
        ) from error


def _check_archive(file: BinaryIO, limits: ListLimits) -> None:
    size = file.seek(0, 2)
    if size > limits.archive_bytes:
        raise ListRefused(
            Refusal.TOO_LARGE, f"The archive has {size:,} bytes, and {limits.archive_bytes:,} are allowed."
        )
    file.seek(0)
    _check_beginning(file.read(512))
    file.seek(max(size - _LONGEST_COMMENT - _END_BYTES, 0))
    _check_directory(file.read())


def _check_digest(file: BufferedReader, sha256: bytes) -> None:
    """Approvals and the comparison with the last run go by the digest, so it has to be that of what is read."""
    file.seek(0)
    if hashlib.file_digest(file, "sha256").digest() != sha256:
        raise ListRefused(Refusal.CHECKSUM, "The list was replaced after the run began. The next run takes it.")


def _check_beginning(first: bytes) -> None:
    if _HTML.match(first):
        raise ListRefused(
            Refusal.HTML, "This is a web page and not a list, perhaps a login or an error page. Check the address."
        )
    if not first.startswith(b"PK"):
        raise ListRefused(Refusal.NOT_A_ZIP, "A list has to be a ZIP archive that holds one XML or CSV file.")


def _check_directory(tail: bytes) -> None:
    """`zipfile` reads the whole directory into memory, and one of millions of members would fill it."""
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_BYTES:
        raise zipfile.BadZipFile
    (directory_bytes,) = struct.unpack_from("<L", tail, at + 12)
    if directory_bytes > _LONGEST_DIRECTORY or tail[max(at - 20, 0) : at].startswith(_LOCATOR_OF_ZIP64):
        raise _wrong_members()


def _only_member(archive: zipfile.ZipFile, limits: ListLimits) -> zipfile.ZipInfo:
    members = archive.infolist()
    if len(members) != 1 or not _NAME.fullmatch(members[0].filename) or members[0].filename != members[0].orig_filename:
        raise _wrong_members()
    (member,) = members
    if member.flag_bits & _ENCRYPTED:
        raise ListRefused(Refusal.ENCRYPTED, "The archive needs a password. Send it without one.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ListRefused(Refusal.MEMBERS, "The archive is packed in a rare way. Pack it as an ordinary ZIP (deflate).")
    # `zipfile` reads no more than the size that is declared here, so a false one ends as a wrong checksum.
    if member.file_size > limits.unpacked_bytes:
        raise ListRefused(
            Refusal.TOO_LARGE, f"The list has {member.file_size:,} bytes, and {limits.unpacked_bytes:,} are allowed."
        )
    if member.file_size > max(member.compress_size * limits.unpacked_ratio, _ALWAYS_ALLOWED_BYTES):
        raise ListRefused(
            Refusal.BOMB, f"The list is packed more than {limits.unpacked_ratio} times smaller, which no real list is."
        )
    return member


def _wrong_members() -> ListRefused:
    return ListRefused(
        Refusal.MEMBERS,
        "The archive has to hold exactly one file, without a folder, whose name ends in .xml or .csv.",
    )
