"""Lists that are taken: their formats, their rows, and rows that are left out."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.roster.kinds.elder_list import KIND as ELDERS
from app.roster.kinds.gib_lists import GIB_LISTS
from app.roster.kinds.student_list import KIND as STUDENTS
from app.roster.lists.list_refused import BadRow, RowFlaw
from app.roster.lists.reading_rules import ListLimits
from app.roster.lists.seen_records import SeenRecords
from tests.support.lists import RULES, ReadList, csv_text, packed, read, turkish_id

HEADER = ("identifier", "name", "phone", "locale", "institution")
AYSE, ALI = turkish_id(1), turkish_id(2)
LENIENT = replace(RULES, limits=ListLimits(bad_rows_share=1))
TAXPAYER = """<?xml version="1.0" encoding="UTF-8"?>
<UserList>
 <User>
  <Identifier>1111113261</Identifier><Title>IŞIK &amp; "ÖZ" \\ A.Ş.</Title><Type>OZEL</Type>
  <FirstCreationTime>2014-03-19T10:54:25</FirstCreationTime><AccountType>GIBPORTAL</AccountType>
  <Documents>
   <Document type="Invoice">
    <Alias><Name>urn:mail:b@x.tr</Name><CreationTime>2014-03-19T10:54:25</CreationTime></Alias>
    <Alias><Name>urn:mail:gone@x.tr</Name><CreationTime>2014-03-19T10:54:25</CreationTime>
     <DeletionTime>2015-01-01T00:00:00</DeletionTime></Alias>
    <Alias><Name>urn:mail:a@x.tr</Name><Name>urn:mail:"c"</Name><CreationTime>2016-01-01</CreationTime></Alias>
   </Document>
   <Document type="DespatchAdvice"><Alias><Name>urn:mail:d</Name></Alias></Document>
   <Document type="Invoice2"><Alias><Name>x</Name><DeletionTime>2015-01-01</DeletionTime></Alias></Document>
  </Documents>
 </User>
</UserList>
"""


def students(tmp_path: Path, *rows: tuple[str, ...], header: tuple[str, ...] = HEADER) -> ReadList:
    return read(packed(tmp_path / "list.zip", csv_text([header, *rows]).encode()), STUDENTS.source, LENIENT)


def alias(institution: str) -> str:
    return f'[{{"alias": "{institution}", "type": "ENROLMENT"}}]'


def test_each_document_of_a_taxpayer_is_a_row(tmp_path: Path) -> None:
    found = read(packed(tmp_path / "list.zip", TAXPAYER.encode(), "list.xml"), GIB_LISTS)
    shared = ("1111113261", 'IŞIK & "ÖZ" \\ A.Ş.', "GIBPORTAL", "OZEL", "2014-03-19T10:54:25", 'ışık & "öz" \\ a.ş.')
    (invoice, despatch) = found.rows
    assert invoice[:7] == ("Invoice", *shared)
    assert json.loads(invoice[7] or "") == [
        {"alias": 'urn:mail:"c"', "type": "PK", "creationTime": "2016-01-01T00:00:00"},
        {"alias": "urn:mail:a@x.tr", "type": "PK", "creationTime": "2016-01-01T00:00:00"},
        {"alias": "urn:mail:b@x.tr", "type": "PK", "creationTime": "2014-03-19T10:54:25"},
    ]
    assert invoice[8] == 'urn:mail:"c":PK,urn:mail:a@x.tr:PK,urn:mail:b@x.tr:PK'
    listed = '[{"alias": "urn:mail:d", "type": "PK", "creationTime": null}]'
    assert despatch == ("DespatchAdvice", *shared, listed, "urn:mail:d:PK")
    assert (found.bad, found.records) == ([], 1)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\\"])
def test_affiliations_are_escaped_in_json(tmp_path: Path, name: str) -> None:
    text = TAXPAYER.replace("2016-01-01<", "2016-01-01T00:00:00<").replace('"c"', "c")
    text = text.replace(
        "<Name>urn:mail:d</Name>", f"<Name>{name}</Name><CreationTime>2016-01-01T00:00:00</CreationTime>"
    )
    found = read(packed(tmp_path / "list.zip", text.encode(), "list.xml"), GIB_LISTS)
    (listed,) = json.loads(found.rows[1][7] or "")
    assert (listed["alias"], found.rows[1][8]) == (name, f"{name}:PK")


def test_affiliations_have_the_type_of_their_list(tmp_path: Path) -> None:
    found = read(packed(tmp_path / "list.zip", TAXPAYER.encode(), "list.xml"), GIB_LISTS, declared=1)
    assert found.rows[1][8] == "urn:mail:d:GB"


def test_elements_may_have_a_namespace_and_hide_records_in_comments(tmp_path: Path) -> None:
    text = """<?xml version="1.0"?><!-- <g:User> --><g:UserList xmlns:g="urn:g"
      a=">"><!-- </g:User> --><g:User><g:Identifier>1111113261</g:Identifier><g:Title><![CDATA[</g:User>]]></g:Title>
      <g:FirstCreationTime>2014-03-19</g:FirstCreationTime><g:Documents><g:Document type="Invoice"><g:Alias>
      <g:Name>x</g:Name></g:Alias></g:Document></g:Documents></g:User ><?p </g:User>?>
      <g:User><!-- <g:User/> --></g:User></g:UserList> <!-- the end -->"""
    for piece_bytes in (1, 64, 1 << 20):
        rules = replace(LENIENT, piece_bytes=piece_bytes)
        found = read(packed(tmp_path / "list.zip", text.encode(), "list.xml"), GIB_LISTS, rules)
        assert [row[1:3] for row in found.rows] == [("1111113261", "</g:User>")], piece_bytes
        assert found.bad == [BadRow(5, RowFlaw.REQUIRED, "identifier")], piece_bytes


def test_people_of_two_institutions_have_two_lines(tmp_path: Path) -> None:
    found = students(tmp_path, (AYSE, "Ayşe Işık", "0532 123 45 67", "TR", "7"), (AYSE, "Ayşe Işık", "", "", "8"))
    assert found.rows == [
        (None, AYSE, "Ayşe Işık", "+905321234567", "tr", "ayşe ışık", alias("7"), "7:ENROLMENT"),
        (None, AYSE, "Ayşe Işık", None, None, "ayşe ışık", alias("8"), "8:ENROLMENT"),
    ]


def test_place_is_one_value_that_may_be_missing(tmp_path: Path) -> None:
    header = ("tc_kimlik_no", "AD_SOYAD", "KURUM_NO", "enlem", "boylam")
    rows = [header, (AYSE, "Ayşe", "7", "41,0082", "28,9784"), (ALI, "Ali", "7", "", "")]
    found = read(packed(tmp_path / "list.zip", csv_text(rows).encode()), ELDERS.source)
    assert [row[5] for row in found.rows] == ["41.008200 28.978400", None]


def test_elders_can_come_as_xml(tmp_path: Path) -> None:
    text = f"""<elders><elder><identifier>{AYSE}</identifier><name>Ayşe</name><lat>41</lat><lon>28</lon>
      <institutions><institution>8</institution><institution>07</institution><institution>8</institution></institutions>
      </elder><elder><identifier>{ALI}</identifier><name>Ali</name></elder></elders>"""
    found = read(packed(tmp_path / "list.zip", text.encode(), "list.xml"), ELDERS.source, LENIENT)
    assert [row[1:6] + row[8:] for row in found.rows] == [
        (AYSE, "Ayşe", None, None, "41.000000 28.000000", "7:ENROLMENT,8:ENROLMENT")
    ]
    assert found.bad == [BadRow(3, RowFlaw.REQUIRED, "alias")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1254"])
@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 20])
def test_encodings_of_csv_are_recognized(tmp_path: Path, encoding: str, piece_bytes: int) -> None:
    rows = [HEADER, (ALI, "Ali Veli", "", "", "7"), (AYSE, "Ayşe Işık", "", "", "7")]
    file = packed(tmp_path / "list.zip", csv_text(rows).encode(encoding))
    found = read(file, STUDENTS.source, replace(RULES, piece_bytes=piece_bytes))
    assert [row[2] for row in found.rows] == ["Ali Veli", "Ayşe Işık"]


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [("utf-8", "UTF-8"), ("utf-8-sig", "utf-8"), ("utf-16", "UTF-16"), ("cp1254", "windows-1254")],
)
def test_encodings_of_xml_are_declared(tmp_path: Path, encoding: str, declared: str) -> None:
    text = TAXPAYER.replace('encoding="UTF-8"', f'encoding="{declared}"')
    found = read(packed(tmp_path / "list.zip", text.encode(encoding), "list.XML"), GIB_LISTS)
    assert found.rows[0][2] == 'IŞIK & "ÖZ" \\ A.Ş.'


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_delimiter_is_that_of_the_header(tmp_path: Path, delimiter: str, line_end: str) -> None:
    text = csv_text([HEADER, (AYSE, 'Ayşe, "Işık";', "", "", "7"), ("",) * 5], delimiter, line_end)
    found = read(packed(tmp_path / "list.zip", text.encode()), STUDENTS.source)
    assert [row[2] for row in found.rows] == ['Ayşe, "Işık";']


@pytest.mark.parametrize(
    ("row", "flaw", "field"),
    [
        (("10000000147", "Ali", "", "", "7"), RowFlaw.IDENTIFIER, "identifier"),
        ((ALI, " ", "", "", "7"), RowFlaw.REQUIRED, "name"),
        ((ALI, "A" * 201, "", "", "7"), RowFlaw.TOO_LONG, "name"),
        ((ALI, "A\0li", "", "", "7"), RowFlaw.CONTROL_CHARACTER, "name"),
        ((ALI, "A\x85li", "", "", "7"), RowFlaw.CONTROL_CHARACTER, "name"),
        ((ALI, "Ali", "12", "", "7"), RowFlaw.PHONE, "phone"),
        ((ALI, "Ali", "", "xx", "7"), RowFlaw.LOCALE, "locale"),
        ((ALI, "Ali", "", "", "0"), RowFlaw.INSTITUTION, "alias"),
        ((ALI, "Ali", "", "", ""), RowFlaw.REQUIRED, "alias"),
        ((ALI, "Ali", "", ""), RowFlaw.FIELD_COUNT, ""),
        ((f" {AYSE} ", "Another", "", "", "07"), RowFlaw.DUPLICATE, "alias"),
    ],
)
def test_bad_row_is_left_out_and_reported_with_its_line(
    tmp_path: Path, row: tuple[str, ...], flaw: RowFlaw, field: str
) -> None:
    good = (AYSE, "Ayşe", "", "", "7")
    found = students(tmp_path, good, row, (turkish_id(3), "Can", "", "", "7"))
    assert [row[2] for row in found.rows] == ["Ayşe", "Can"]
    assert (found.bad, found.bad_count) == ([BadRow(3, flaw, field)], 1)


def test_open_quote_spoils_only_its_own_line(tmp_path: Path) -> None:
    text = csv_text([HEADER, (AYSE, "Ayşe", "", "", "7"), (ALI, "@", "", "", "7"), (turkish_id(3), "Can", "", "", "7")])
    found = read(packed(tmp_path / "list.zip", text.replace("@", '"Ali').encode()), STUDENTS.source, LENIENT)
    assert [row[2] for row in found.rows] == ["Ayşe", "Can"]
    assert found.bad == [BadRow(3, RowFlaw.QUOTES, "")]


@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_second_record_of_a_taxpayer_is_left_out(tmp_path: Path, piece_bytes: int) -> None:
    user = TAXPAYER[TAXPAYER.index(" <User>") : TAXPAYER.index("</UserList>")]
    users = [user, user.replace("1111113261", " 11111 13261"), user.replace("1111113261", "1111113262")]
    text = f"<UserList>\n{''.join(users)}</UserList>"
    rules = replace(LENIENT, piece_bytes=piece_bytes)
    found = read(packed(tmp_path / "list.zip", text.encode(), "list.xml"), GIB_LISTS, rules)
    assert [row[1] for row in found.rows] == ["1111113261"] * 2 + ["1111113262"] * 2
    assert found.bad == [BadRow(2 + user.count("\n"), RowFlaw.DUPLICATE, "identifier")]


def test_first_hundred_bad_rows_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    rows = [HEADER, (AYSE, "Ayşe", "", "", "7"), *[(ALI, "", "", "", "7")] * 250]
    rules = replace(LENIENT, piece_bytes=1000)
    found = read(packed(tmp_path / "list.zip", csv_text(rows).encode()), STUDENTS.source, rules)
    assert ([bad.line for bad in found.bad], found.bad_count) == ([*range(3, 103)], 250)


def test_a_number_is_seen_once() -> None:
    seen = SeenRecords()
    numbers = [7 * number + 1 for number in range(100_000)]
    assert seen.repeated(numbers) == []
    assert seen.repeated([2, *numbers[:3], 2, 3]) == [1, 2, 3, 4]


@dataclass(frozen=True)
class Person:
    number: int
    name: str
    phone: str
    institution: int


letters = st.text("aIıİiğŞ ;,\"&<>'\\\u00e7", min_size=1, max_size=12).map(lambda text: f"x{text}x")
people = st.lists(
    st.builds(Person, st.integers(0, 50), letters, st.sampled_from(["", "+905321234567", "0532 1"]), st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


def as_csv(listed: list[Person]) -> str:
    rows = [(turkish_id(one.number), one.name, one.phone, "", str(one.institution)) for one in listed]
    return csv_text([HEADER, *rows])


def as_xml(listed: list[Person], encoding: str) -> str:
    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    records = [
        f"<student><identifier>{turkish_id(one.number)}</identifier><name>{escaped(one.name)}</name>"
        f"<phone>{one.phone}</phone><institutions><institution>{one.institution}</institution></institutions></student>\n"
        for one in listed
    ]
    return f'<?xml version="1.0" encoding="{encoding}"?>\n<students>{"".join(records)}</students>'


def expected_rows(listed: list[Person], *, one_line_each: bool) -> list[tuple[str, str, str | None, str]]:
    seen: set[object] = set()
    rows: list[tuple[str, str, str | None, str]] = []
    for one in listed:
        if one.phone != "0532 1" and one.institution > 0:
            key = one.number if one_line_each else (one.number, one.institution)
            if key not in seen:
                rows.append((turkish_id(one.number), one.name, one.phone or None, f"{one.institution}:ENROLMENT"))
            seen.add(key)
    return rows


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    listed=people,
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "windows-1254"]),
    piece_bytes=st.sampled_from([1, 2, 33, 200, 1 << 20]),
    is_xml=st.booleans(),
)
def test_what_was_written_is_read_whatever_the_size_of_a_piece(
    tmp_path: Path, listed: list[Person], encoding: str, piece_bytes: int, is_xml: bool
) -> None:
    first = Person(99, "İlk", "", 1)
    listed = [first, *listed]
    text = as_xml(listed, encoding.removesuffix("-sig")) if is_xml else as_csv(listed)
    file = packed(tmp_path / "list.zip", text.encode(encoding), "list.xml" if is_xml else "list.csv")
    found = read(file, STUDENTS.source, replace(LENIENT, piece_bytes=piece_bytes))
    expected = expected_rows(listed, one_line_each=is_xml)
    assert [(row[1], row[2], row[3], row[7]) for row in found.rows] == expected
    assert found.bad_count == len(listed) - len(expected)
    assert found.records == len(expected)
