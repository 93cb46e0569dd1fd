"""What a kind of list declares. The engine reads these values and knows no kind by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # The processes that parse lists do not need the tables of users, which take long to import.
    from app.users.models import Role


class ColumnType(StrEnum):
    TEXT = "TEXT"
    PHONE = "PHONE"
    """In the international form: +905321234567."""
    DATE_TIME = "DATE_TIME"
    """Service time without an offset, to the second."""
    PLACE = "PLACE"
    """Latitude and longitude are one value, so that no place is put together from two lists."""
    LOCALE = "LOCALE"


@dataclass(frozen=True)
class ListColumn:
    name: str
    shown_as: str
    """The name in answers and archives."""
    type: ColumnType = ColumnType.TEXT
    required: bool = False
    longest: int = 200


class IdentifierRule(StrEnum):
    TURKISH_ID = "TURKISH_ID"
    """Eleven digits, the last two of them check digits."""
    TAX_OR_TURKISH_ID = "TAX_OR_TURKISH_ID"
    """Ten or eleven digits. Not checked further, because the publisher has done that."""


class AliasRule(StrEnum):
    TEXT = "TEXT"
    INSTITUTION = "INSTITUTION"
    """The number of an institution, as in `users.institution_id`."""


@dataclass(frozen=True)
class CsvFormat:
    """Each line is one person with one affiliation. The same person may have several lines."""

    headers: Mapping[str, tuple[str, ...]]
    """For each column, and for `identifier` and `alias`, the accepted headers in lower case. For a place they
    alternate: one of the latitude, then one of the longitude. A column that is not required may be missing."""


@dataclass(frozen=True)
class XmlFormat:
    record: str
    elements: Mapping[str, str]
    """For each column, and for `identifier`, the path of its element in a record. A place has two, with a blank between
    them: the latitude, then the longitude."""
    aliases: str
    """The path of the elements that hold one affiliation each."""
    alias: Mapping[str, str]
    """For each part of an affiliation, its element in that. "." is the element itself. Each element that `alias` finds
    makes an affiliation of its own with the same other parts."""
    document: str | None = None
    """The attribute, of the elements around the affiliations, that tells which document they are for."""
    alias_ended: str | None = None
    """An affiliation that has this element is over, and is left out."""


@dataclass(frozen=True)
class ListDeclaration:
    name: str
    """As in the path of a pushed list and in the settings."""
    alias_type: str
    """The type that affiliations from this list get."""


@dataclass(frozen=True)
class ListSource:
    """Lists that are published together. Several kinds may read the same source."""

    name: str
    lists: tuple[ListDeclaration, ...]
    identifier: IdentifierRule
    columns: tuple[ListColumn, ...]
    alias_parts: tuple[str, ...]
    """The parts of an affiliation in answers, for example `alias`, `type`, `creationTime`."""
    alias_rule: AliasRule = AliasRule.TEXT
    alias_times: tuple[str, ...] = ()
    """Those of the parts that are times."""
    csv: CsvFormat | None = None
    xml: XmlFormat | None = None


@dataclass(frozen=True)
class Kind:
    name: str
    document_type: int
    source: ListSource
    hashed: tuple[str, ...]
    """The columns that make a record another one when they change, in the order in which they are hashed; affiliations
    come last. `title_lower` stands for the lower case of the column `title`."""
    document: str | None = None
    """Which documents of the source this kind is about; None if the source has no documents."""
    role: "Role | None" = None
    """The role of the people who enter and leave the service by this list; None for a kind that is published only."""
    answers_in_service_time: bool = False
    """Times in answers have no offset, for consumers of the service that this one replaces."""
