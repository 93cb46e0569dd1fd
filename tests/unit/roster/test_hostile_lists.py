"""Lists that are refused as a whole: each with its reason, without touching anything and without naming anybody."""

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.roster.kinds.elder_list import KIND as ELDERS
from app.roster.kinds.gib_lists import GIB_LISTS
from app.roster.kinds.kind import ListSource
from app.roster.kinds.student_list import KIND as STUDENTS
from app.roster.lists.list_refused import ListRefused, Refusal
from app.roster.lists.reading_rules import ListLimits
from tests.support.lists import RULES, csv_text, packed, read, turkish_id

NAME = "Gizli Kişi"
HEADER = ("identifier", "name", "institution")
GOOD = csv_text([HEADER, (turkish_id(1), NAME, "7")])
USER = (
    f"<User><Identifier>1111113261</Identifier><Title>{NAME}</Title><FirstCreationTime>2014-03-19</FirstCreationTime>"
    '<Documents><Document type="Invoice"><Alias><Name>x</Name></Alias></Document></Documents></User>'
)
ENTITY = f'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><UserList>{USER}</UserList>'
LAUGHS = f'<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]><UserList>{USER}&y;</UserList>'


def refusal_of(file: Path, source: ListSource, limits: ListLimits | None = None) -> Refusal:
    with pytest.raises(ListRefused) as caught:
        read(file, source, replace(RULES, limits=limits or RULES.limits, piece_bytes=4096))
    assert caught.value.code == "list_refused"
    assert NAME not in caught.value.message
    assert caught.value.message.endswith(".")
    return caught.value.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ENTITY, Refusal.DTD),
        (LAUGHS, Refusal.DTD),
        (f"<!-- a --><!DOCTYPE UserList><UserList>{USER}</UserList>", Refusal.DTD),
        (f"<UserList><!DOCTYPE a>{USER}</UserList>", Refusal.MALFORMED),
        (f"<UserList>&x;{USER}</UserList>", Refusal.MALFORMED),
        (f"<UserList>{USER}", Refusal.MALFORMED),
        (f"<UserList>{USER}<User><Iden", Refusal.MALFORMED),
        (f"<UserList>{USER}<!-- </UserList>", Refusal.MALFORMED),
        (f"<UserList>{USER}</UserList><UserList>{USER}</UserList>", Refusal.MALFORMED),
        (f"<UserList>{USER}</List>{USER}", Refusal.MALFORMED),
        (f"<UserList a='1' a='2'>{USER}</UserList>", Refusal.MALFORMED),
        (f"{USER[:40]}\x00{USER[40:]}", Refusal.MALFORMED),
        ("<UserList", Refusal.MALFORMED),
        ("", Refusal.MALFORMED),
        ("identifier;name\r\n", Refusal.MALFORMED),
        ("<UserList/>", Refusal.NO_ROWS),
        ("<UserList></UserList>", Refusal.NO_ROWS),
        ("<UserList><Other/></UserList>", Refusal.NO_ROWS),
        (f"<html>{USER}</html>", Refusal.HTML),
        (f'<?xml version="1.0" encoding="koi8-r"?><UserList>{USER}</UserList>', Refusal.ENCODING),
    ],
)
def test_xml_is_refused(tmp_path: Path, text: str, reason: Refusal) -> None:
    assert refusal_of(packed(tmp_path / "list.zip", text.encode(), "list.xml"), GIB_LISTS) is reason


def test_whole_xml_is_refused_if_its_record_never_ends(tmp_path: Path) -> None:
    file = packed(tmp_path / "list.zip", f"<UserList>{USER}<User>{'a' * 2_000_000}".encode(), "list.xml")
    assert refusal_of(file, GIB_LISTS, ListLimits(record_bytes=1000, unpacked_ratio=10_000)) is Refusal.MALFORMED


@pytest.mark.parametrize("rows", [1, 300])
def test_bytes_of_another_encoding_are_refused(tmp_path: Path, rows: int) -> None:
    before = csv_text([HEADER, *((turkish_id(number), "Cag" if number else "Çağ", "7") for number in range(rows))])
    file = packed(tmp_path / "list.zip", before.encode() + "Ağa".encode("cp1254"))
    assert refusal_of(file, STUDENTS.source) is Refusal.ENCODING


@pytest.mark.parametrize("content", [b"\x81\x8d;\xfe", "Çağ".encode() + b"\xff"])
def test_bytes_of_no_encoding_are_refused(tmp_path: Path, content: bytes) -> None:
    assert refusal_of(packed(tmp_path / "list.zip", GOOD.encode() + content), STUDENTS.source) is Refusal.ENCODING


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ((turkish_id(1), NAME, "7"), Refusal.HEADERS),
        (("identifier", "name"), Refusal.HEADERS),
        (("identifier", "institution"), Refusal.HEADERS),
        (("name", "institution"), Refusal.HEADERS),
        ((*HEADER, "lat"), Refusal.HEADERS),
        ((*HEADER, "lat", "enlem"), Refusal.HEADERS),
        ((*HEADER, "tc_kimlik_no"), Refusal.HEADERS),
        ((*HEADER, "name"), Refusal.HEADERS),
        ((*HEADER, ""), Refusal.HEADERS),
        (HEADER, Refusal.NO_ROWS),
    ],
)
def test_csv_is_refused_by_its_first_line(tmp_path: Path, header: tuple[str, ...], reason: Refusal) -> None:
    assert refusal_of(packed(tmp_path / "list.zip", csv_text([header]).encode()), ELDERS.source) is reason


@pytest.mark.parametrize("end", [';"Ali', '"\r\n', f'{turkish_id(2)};x;"7\r\n\r\n'])
def test_csv_that_ends_in_an_open_quote_is_refused(tmp_path: Path, end: str) -> None:
    assert refusal_of(packed(tmp_path / "list.zip", f"{GOOD}{end}".encode()), STUDENTS.source) is Refusal.MALFORMED


@pytest.mark.parametrize(("bad", "is_refused"), [(0, False), (1, False), (2, False), (3, True)])
def test_more_than_a_share_of_bad_rows_is_refused(tmp_path: Path, bad: int, is_refused: bool) -> None:
    rows = [(turkish_id(number), NAME if number >= bad else "", "7") for number in range(200)]
    file = packed(tmp_path / "list.zip", csv_text([HEADER, *rows]).encode())
    if is_refused:
        assert refusal_of(file, STUDENTS.source) is Refusal.BAD_ROWS
    else:
        assert read(file, STUDENTS.source).bad_count == bad


def test_one_bad_row_of_a_short_list_is_left_out(tmp_path: Path) -> None:
    file = packed(tmp_path / "list.zip", f"{GOOD}1;2;3".encode())
    assert (read(file, STUDENTS.source).records, read(file, STUDENTS.source).bad_count) == (1, 1)


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as made:
        for name, content in members:
            made.writestr(zipfile.ZipInfo(name), content, method)
    return written.getvalue()


def _encrypted() -> bytes:
    content = bytearray(archive(("list.csv", GOOD.encode())))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def _wrong_checksum() -> bytes:
    content = bytearray(archive(("list.csv", GOOD.encode()), method=zipfile.ZIP_STORED))
    content[content.index(NAME.encode())] ^= 1
    return bytes(content)


def _false_size() -> bytes:
    """Says that a megabyte of zeros is a hundred bytes long."""
    content = bytearray(archive(("list.csv", bytes(1 << 20))))
    struct.pack_into("<L", content, content.index(b"PK\x01\x02") + 24, 100)
    return bytes(content)


WHOLE = archive(("list.csv", GOOD.encode()))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: GOOD.encode(), Refusal.NOT_A_ZIP),
        (lambda: b"", Refusal.NOT_A_ZIP),
        (lambda: b"\x1f\x8b" + GOOD.encode(), Refusal.NOT_A_ZIP),
        (lambda: b"\n<!DOCTYPE html><title>Login</title>", Refusal.HTML),
        (lambda: b"\xef\xbb\xbf<HTML>", Refusal.HTML),
        (lambda: WHOLE[:-30], Refusal.DAMAGED),
        (lambda: WHOLE[: len(WHOLE) // 2], Refusal.DAMAGED),
        (lambda: b"PK\x03\x04", Refusal.DAMAGED),
        (lambda: WHOLE[:45] + b"\xff\xff\xff\xff" + WHOLE[49:], Refusal.DAMAGED),
        (_wrong_checksum, Refusal.DAMAGED),
        (_false_size, Refusal.DAMAGED),
        (_encrypted, Refusal.ENCRYPTED),
        (lambda: archive(), Refusal.MEMBERS),
        (lambda: archive(("list.csv", b"a"), ("list2.csv", b"a")), Refusal.MEMBERS),
        (lambda: archive(("folder/", b""), ("folder/list.csv", b"a")), Refusal.MEMBERS),
        *[
            (lambda name=name: archive((name, GOOD.encode())), Refusal.MEMBERS)
            for name in (
                "../list.csv",
                "/list.csv",
                "a/list.csv",
                "..\\list.csv",
                "C:list.csv",
                "list.txt",
                "list.csv\n",
            )
        ],
        (lambda: archive(("list.xml_.csv", b"")).replace(b"xml_", b"xml\0"), Refusal.MEMBERS),
        (lambda: archive(("list.csv", GOOD.encode()), method=zipfile.ZIP_LZMA), Refusal.MEMBERS),
        (lambda: archive(("list.csv", bytes(2 << 20))), Refusal.BOMB),
        (lambda: archive(("list.csv", bytes(5 << 20))), Refusal.TOO_LARGE),
    ],
)
def test_archive_is_refused(tmp_path: Path, made: Callable[[], bytes], reason: Refusal) -> None:
    file = tmp_path / "list.zip"
    file.write_bytes(made())
    assert refusal_of(file, STUDENTS.source, ListLimits(unpacked_bytes=4 << 20)) is reason


def test_archive_of_many_members_is_refused_before_its_directory_is_read(tmp_path: Path) -> None:
    file = tmp_path / "list.zip"
    file.write_bytes(archive(*[(f"{number}.csv", b"") for number in range(2_000)], method=zipfile.ZIP_STORED))
    tracemalloc.start()
    try:
        assert refusal_of(file, STUDENTS.source) is Refusal.MEMBERS
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_large_archive_and_missing_file_are_refused(tmp_path: Path) -> None:
    file = packed(tmp_path / "list.zip", GOOD.encode())
    assert refusal_of(file, STUDENTS.source, ListLimits(archive_bytes=10)) is Refusal.TOO_LARGE
    assert refusal_of(tmp_path / "none.zip", STUDENTS.source) is Refusal.NOT_READABLE


def test_format_that_a_source_does_not_have_is_refused(tmp_path: Path) -> None:
    assert refusal_of(packed(tmp_path / "list.zip", GOOD.encode()), GIB_LISTS) is Refusal.MEMBERS
