"""Places in lists that are in the order of a number."""

from app.errors import InvalidValue

HIGHEST = 2**63 - 1


def number_of(cursor: str) -> int:
    if cursor.isascii() and cursor.isdigit() and len(cursor) < 20 and int(cursor) <= HIGHEST:
        return int(cursor)
    raise InvalidValue("cursor", "is not a cursor that this list has given out")
