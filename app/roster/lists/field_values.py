"""Checks and normalizes values. Pure.

Each check can look at one value and at many. For a list of millions the second is faster, because most of its work is
done on all values joined. It gives up if any value is unusual, and then each is looked at alone.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from app.foundation.phone_numbers import InvalidPhone, canonical_phone
from app.roster.kinds.kind import AliasRule, ColumnType, IdentifierRule, ListColumn
from app.roster.lists.list_refused import FlawedRow, RowFlaw
from app.roster.lists.reading_rules import ReadingRules
from app.roster.lists.turkish_id import is_turkish_id

LOCALES = frozenset({"tr", "en"})
LONGEST_ALIAS = 200
_HIGHEST_INSTITUTION = 2**63 - 1
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_USUAL_PHONES = re.compile(r"(?:(?:\+[1-9][0-9]{7,14}|0[1-9][0-9]{9})?(?:\n|\Z))*+")
_USUAL_TIMES = re.compile(r"(?:(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})?(?:\n|\Z))*+")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_DEGREES = re.compile(r"-?[0-9]{1,3}(?:[.,][0-9]{1,15})?")
_DIGITS_OF_A_NATIONAL_NUMBER = 10


class Check(Protocol):
    """Of values that are plain already."""

    def one(self, text: str) -> str:
        """Raises `FlawedRow`. The text is not empty."""
        ...

    def many(self, texts: list[str]) -> list[str] | None:
        """None if each has to be looked at alone. Texts may be empty, and stay so."""
        ...


def plain(text: str | None, field: str, longest: int) -> str:
    """In composed form, so that the same name in two spellings of Unicode is no change."""
    text = (text or "").strip()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if _CONTROL.search(text):
        raise FlawedRow(RowFlaw.CONTROL_CHARACTER, field)
    if len(text) > longest:
        raise FlawedRow(RowFlaw.TOO_LONG, field)
    return text


def plain_many(texts: Iterable[str | None], longest: int) -> list[str] | None:
    joined = "\n".join([text or "" for text in texts])
    if not joined.isascii():
        joined = unicodedata.normalize("NFC", joined)
    # All blanks but this one are not printable.
    if " \n" in joined or "\n " in joined or joined.startswith(" ") or joined.endswith(" "):
        return None
    values = joined.split("\n")
    return values if "".join(values).isprintable() and max(map(len, values)) <= longest else None


def turkish_lower(text: str) -> str:
    return text.replace("İ", "i").replace("I", "ı").lower()


@dataclass(frozen=True)
class IdentifierCheck:
    """Blanks are taken away first, so that two spellings are one person."""

    rule: IdentifierRule

    def one(self, text: str) -> str:
        digits = "".join(text.split())
        if not digits:
            raise FlawedRow(RowFlaw.REQUIRED, "identifier")
        if not self._is_good(digits):
            raise FlawedRow(RowFlaw.IDENTIFIER, "identifier")
        return digits

    def many(self, texts: list[str]) -> list[str] | None:
        return texts if all(map(self._is_good, texts)) else None

    def _is_good(self, digits: str) -> bool:
        if self.rule is IdentifierRule.TURKISH_ID:
            return is_turkish_id(digits)
        return len(digits) in (10, 11) and digits.isascii() and digits.isdigit()


@dataclass(frozen=True)
class EachCheck:
    """For values that are rare, or few and often the same."""

    function: Callable[[str], str]

    def one(self, text: str) -> str:
        return self.function(text)

    def many(self, texts: list[str]) -> list[str] | None:
        known = {"": ""}
        try:
            for text in set(texts):
                known[text] = text and self.function(text)
        except FlawedRow:
            return None
        return [known[text] for text in texts]


@dataclass(frozen=True)
class PhoneCheck:
    field: str
    country_code: str

    def one(self, text: str) -> str:
        try:
            return canonical_phone(self._with_its_prefix(text), self.country_code)
        except InvalidPhone:
            raise FlawedRow(RowFlaw.PHONE, self.field) from None

    def many(self, texts: list[str]) -> list[str] | None:
        if not _USUAL_PHONES.fullmatch("\n".join(texts)):
            return None
        prefix = f"+{self.country_code}"
        return [f"{prefix}{text[1:]}" if text.startswith("0") else text for text in texts]

    def _with_its_prefix(self, text: str) -> str:
        """Spreadsheets take a phone for a number, and leave out its zero or its plus."""
        digits = "".join(text.split())
        if digits.isdigit() and not digits.startswith("0"):
            if len(digits) == _DIGITS_OF_A_NATIONAL_NUMBER:
                return f"0{digits}"
            prefixed = len(self.country_code) + _DIGITS_OF_A_NATIONAL_NUMBER
            if digits.startswith(self.country_code) and len(digits) == prefixed:
                return f"+{digits}"
        return text


@dataclass(frozen=True)
class TimeCheck:
    field: str
    zone: ZoneInfo

    def one(self, text: str) -> str:
        try:
            if not _DATE_TIME.fullmatch(text):
                raise ValueError
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None:
                moment = moment.astimezone(self.zone).replace(tzinfo=None)
        except (ValueError, OverflowError):
            raise FlawedRow(RowFlaw.DATE_TIME, self.field) from None
        return moment.isoformat(timespec="seconds")

    def many(self, texts: list[str]) -> list[str] | None:
        if not _USUAL_TIMES.fullmatch("\n".join(texts)):
            return None
        try:
            for text in texts:
                if text:
                    datetime.fromisoformat(text)
        except ValueError:
            return None
        return texts


def check_for(column: ListColumn, rules: ReadingRules) -> Check | None:
    """None for text, which only has to be plain."""
    match column.type:
        case ColumnType.PHONE:
            return PhoneCheck(column.name, rules.country_code)
        case ColumnType.DATE_TIME:
            return TimeCheck(column.name, rules.zone)
        case ColumnType.LOCALE:
            return EachCheck(lambda text: _locale(text, column.name))
        case ColumnType.PLACE:
            return EachCheck(lambda text: _place(text, column.name))
        case ColumnType.TEXT:
            return None


def check_for_alias(rule: AliasRule) -> Check | None:
    return EachCheck(_institution) if rule is AliasRule.INSTITUTION else None


def _institution(text: str) -> str:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= _HIGHEST_INSTITUTION:
        raise FlawedRow(RowFlaw.INSTITUTION, "alias")
    return str(int(text))


def _locale(text: str, field: str) -> str:
    locale = text.lower()
    if locale not in LOCALES:
        raise FlawedRow(RowFlaw.LOCALE, field)
    return locale


def joined_place(latitude: str | None, longitude: str | None) -> str | None:
    """The two parts of a place as one value, not checked yet."""
    joined = f"{(latitude or '').strip()};{(longitude or '').strip()}"
    return None if joined == ";" else joined


def _place(text: str, field: str) -> str:
    latitude, _, longitude = text.partition(";")
    return f"{_degrees(latitude, 90, field):.6f} {_degrees(longitude, 180, field):.6f}"


def _degrees(text: str, most: int, field: str) -> float:
    # Spreadsheets in Turkish write a comma before the fraction.
    if not _DEGREES.fullmatch(text) or not -most <= (value := float(text.replace(",", "."))) <= most:
        raise FlawedRow(RowFlaw.PLACE, field)
    return value + 0.0
