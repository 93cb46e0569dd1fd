"""Pages of long lists, and the cursors that lead from one page to the next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from app.foundation.errors import InvalidValue

BIGINT_MAX = 2**63 - 1
Item = TypeVar("Item")


@dataclass(frozen=True)
class Page(Generic[Item]):
    items: list[Item]
    next_cursor: str | None


def page_of(rows: Sequence[Any], limit: int, show: Callable[[Any], Item]) -> Page[Item]:
    """The first `limit` rows. The query has to ask for one row more. If that row exists there is a next page, whose
    cursor is the last id shown."""
    items = [show(row) for row in rows[:limit]]
    return Page(items, str(_id(items[-1])) if len(rows) > limit else None)


def _id(item: Any) -> object:
    return item.id


def parse_number(cursor: str) -> int:
    if cursor.isascii() and cursor.isdigit() and len(cursor) < 20 and int(cursor) <= BIGINT_MAX:
        return int(cursor)
    raise _unknown()


def parse_uuid(cursor: str) -> UUID:
    try:
        return UUID(cursor)
    except ValueError:
        raise _unknown() from None


def _unknown() -> InvalidValue:
    return InvalidValue("cursor", "is not a cursor that this list has given out")
