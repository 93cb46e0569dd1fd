"""Single values of lists: what is accepted, and how it is written afterwards."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.roster.kinds.kind import AliasRule, ColumnType, IdentifierRule, ListColumn
from app.roster.lists.field_values import (
    IdentifierCheck,
    check_for,
    check_for_alias,
    joined_place,
    plain,
    plain_many,
    turkish_lower,
)
from app.roster.lists.list_refused import FlawedRow, RowFlaw
from app.roster.lists.reading_rules import ReadingRules
from app.roster.lists.turkish_id import is_turkish_id
from tests.support.lists import turkish_id

RULES = ReadingRules(ZoneInfo("Europe/Istanbul"))
TAX, PERSON = IdentifierRule.TAX_OR_TURKISH_ID, IdentifierRule.TURKISH_ID


def checked(type_: ColumnType, text: str) -> str:
    check = check_for(ListColumn("field", "field", type_), RULES)
    assert check is not None
    one = check.one(text)
    assert check.many([text, ""]) in (None, [one, ""]), "many values are checked as one by one"
    return one


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (ColumnType.PHONE, "+905321234567", "+905321234567"),
        (ColumnType.PHONE, "0532 123 45 67", "+905321234567"),
        (ColumnType.PHONE, "5321234567", "+905321234567"),
        (ColumnType.PHONE, "532 123 45 67", "+905321234567"),
        (ColumnType.PHONE, "905321234567", "+905321234567"),
        (ColumnType.PHONE, "00 49 30 1234567", "+49301234567"),
        (ColumnType.PHONE, "+90 (0) 532 123-45-67", "+905321234567"),
        (ColumnType.DATE_TIME, "2024-06-15T00:00:00", "2024-06-15T00:00:00"),
        (ColumnType.DATE_TIME, "2024-06-15 13:14:15", "2024-06-15T13:14:15"),
        (ColumnType.DATE_TIME, "2024-06-15", "2024-06-15T00:00:00"),
        (ColumnType.DATE_TIME, "2024-06-15T13:14:15.987654", "2024-06-15T13:14:15"),
        (ColumnType.DATE_TIME, "2024-06-15T21:14:15Z", "2024-06-16T00:14:15"),
        (ColumnType.DATE_TIME, "2024-06-15T13:14:15.5+01:00", "2024-06-15T15:14:15"),
        (ColumnType.LOCALE, "TR", "tr"),
        (ColumnType.PLACE, joined_place(" 41.0082", "28.9784 "), "41.008200 28.978400"),
        (ColumnType.PLACE, joined_place("41,0082", "-179,5"), "41.008200 -179.500000"),
    ],
)
def test_values_are_normalized(type_: ColumnType, text: str, expected: str) -> None:
    assert checked(type_, text) == expected


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        *[(ColumnType.PHONE, text) for text in ("12345", "0532", "phone", "+0532123456", "5.32123E+09", "٠٥٣٢١٢٣٤٥٦٧")],
        *[
            (ColumnType.DATE_TIME, text)
            for text in (
                "15.06.2024",
                "2024-13-01",
                "2024-02-30T00:00:00",
                "2024-W25-6T00:00:00",
                "0001-01-01T00:00:00+14:00",
            )
        ],
        *[(ColumnType.LOCALE, text) for text in ("de", "tr-TR")],
        *[(ColumnType.PLACE, text) for text in ("90.1;28", "41;180.1", "41;", ";28", "nan;28", "41;28;1", "1e1;1")],
    ],
)
def test_flawed_values_are_refused_without_being_named(type_: ColumnType, text: str) -> None:
    with pytest.raises(FlawedRow) as caught:
        checked(type_, text)
    assert (caught.value.flaw, caught.value.field) == (RowFlaw(type_.value), "field")
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        (PERSON, "10000000146", "10000000146"),
        (PERSON, " 100 000 001\u00a046 ", "10000000146"),
        (TAX, "0123456789", "0123456789"),
        (TAX, "11111111111", "11111111111"),
    ],
)
def test_blanks_in_an_identifier_do_not_count(rule: IdentifierRule, text: str, expected: str) -> None:
    assert IdentifierCheck(rule).one(text) == expected


@pytest.mark.parametrize(
    ("rule", "text", "flaw"),
    [
        (PERSON, " ", RowFlaw.REQUIRED),
        *[
            (PERSON, text, RowFlaw.IDENTIFIER)
            for text in ("10000000147", "10000000156", "00000000000", "1000000014", "100000001466", "1000000014a")
        ],
        *[(TAX, text, RowFlaw.IDENTIFIER) for text in ("123456789", "123456789012", "12345a7890", "١٢٣٤٥٦٧٨٩٠")],
    ],
)
def test_identifiers_are_checked(rule: IdentifierRule, text: str, flaw: RowFlaw) -> None:
    check = IdentifierCheck(rule)
    with pytest.raises(FlawedRow) as caught:
        check.one(text)
    assert (caught.value.flaw, check.many([text])) == (flaw, None)


@given(st.integers(0, 899_999_999), st.integers(0, 99))
def test_check_digits_follow_from_the_others(number: int, last: int) -> None:
    good = turkish_id(number)
    assert is_turkish_id(good)
    other = f"{good[:9]}{last:02}"
    assert is_turkish_id(other) == (other == good)


@pytest.mark.parametrize(("text", "expected"), [("7", "7"), ("007", "7"), (str(2**63 - 1), str(2**63 - 1))])
def test_institutions_are_positive_numbers(text: str, expected: str) -> None:
    check = check_for_alias(AliasRule.INSTITUTION)
    assert check is not None
    assert check.one(text) == expected
    for bad in ("0", "-7", "7.0", "x", str(2**63), "²"):
        with pytest.raises(FlawedRow):
            check.one(bad)


def test_lower_case_is_turkish() -> None:
    assert turkish_lower("İSTANBUL IŞIK ıi") == "istanbul ışık ıi"


texts = st.text(st.sampled_from(" aÇI\u0307\u0301\u00a0\u200b\x85\t\x00ğ"), max_size=6)


@given(st.lists(texts, min_size=1, max_size=4))
def test_many_values_are_made_plain_as_one_by_one(values: list[str]) -> None:
    together = plain_many(values, 5)
    if together is not None:
        assert together == [plain(value, "field", 5) for value in values]


def test_usual_values_are_made_plain_together() -> None:
    assert plain_many(["Işık", "Ays\u0327e", ""], 5) == ["Işık", "Ayşe", ""]
