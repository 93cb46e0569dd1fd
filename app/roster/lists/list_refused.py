"""A list that is not taken, and rows that are left out of one that is."""

from dataclasses import dataclass
from enum import StrEnum

from app.foundation.errors import AppError


class Refusal(StrEnum):
    """Why a whole list was refused."""

    NOT_READABLE = "NOT_READABLE"
    """The file, or the answer of the server that has it."""
    UNREACHABLE = "UNREACHABLE"
    TOO_LATE = "TOO_LATE"
    REDIRECT = "REDIRECT"
    TOO_LARGE = "TOO_LARGE"
    CHECKSUM = "CHECKSUM"
    HTML = "HTML"
    NOT_A_ZIP = "NOT_A_ZIP"
    DAMAGED = "DAMAGED"
    MEMBERS = "MEMBERS"
    ENCRYPTED = "ENCRYPTED"
    BOMB = "BOMB"
    ENCODING = "ENCODING"
    DTD = "DTD"
    MALFORMED = "MALFORMED"
    HEADERS = "HEADERS"
    NO_ROWS = "NO_ROWS"
    BAD_ROWS = "BAD_ROWS"


class ListRefused(AppError):
    """The message tells what to do. It never has a value of the list."""

    code = "list_refused"

    def __init__(self, reason: Refusal, message: str) -> None:
        super().__init__(message, reason=reason)
        self.reason = reason

    def __reduce__(self) -> tuple[type["ListRefused"], tuple[Refusal, str]]:
        return ListRefused, (self.reason, self.message)


class RowFlaw(StrEnum):
    """Why a row was left out."""

    REQUIRED = "REQUIRED"
    TOO_LONG = "TOO_LONG"
    CONTROL_CHARACTER = "CONTROL_CHARACTER"
    IDENTIFIER = "IDENTIFIER"
    PHONE = "PHONE"
    DATE_TIME = "DATE_TIME"
    PLACE = "PLACE"
    LOCALE = "LOCALE"
    INSTITUTION = "INSTITUTION"
    QUOTES = "QUOTES"
    FIELD_COUNT = "FIELD_COUNT"
    DUPLICATE = "DUPLICATE"


@dataclass(frozen=True)
class BadRow:
    """Without the value, because a report is read by more people than a list."""

    line: int
    flaw: RowFlaw
    field: str


class FlawedRow(Exception):
    def __init__(self, flaw: RowFlaw, field: str) -> None:
        super().__init__(flaw, field)
        self.flaw, self.field = flaw, field
