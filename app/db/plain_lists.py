"""Sends lists of ids, numbers and times as arrays. The driver looks at the type of every element, asks for its dumper
and searches for characters that need quotes, which takes longer than all the rest of a statement with a few lists."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.adapt import PyFormat
from psycopg.types.array import ListDumper

NONE = frozenset({type(None)})
BOOLS, BIGINTS, DOUBLES, TIMES, UUIDS = 1000, 1016, 1022, 1185, 2951
"""The types of the arrays in PostgreSQL, the same as the driver's."""
PLAIN: dict[type, tuple[int, Callable[[Any], str]]] = {
    bool: (BOOLS, str),
    int: (BIGINTS, str),
    float: (DOUBLES, repr),
    datetime: (TIMES, datetime.isoformat),
    UUID: (UUIDS, lambda id_: id_.hex),
}
"""By the type of the elements. None of their texts needs quotes."""


class PlainListDumper(ListDumper):
    """For lists whose elements are of one of these types, or None. The driver sends all others."""

    _text: Callable[[Any], str] | None = None

    def get_key(self, obj: list[Any], format: PyFormat) -> Any:
        plain = _plain_type(obj)
        return super().get_key(obj, format) if plain is None else (self.cls, plain)

    def upgrade(self, obj: list[Any], format: PyFormat) -> Any:
        plain = _plain_type(obj)
        if plain is None:
            return super().upgrade(obj, format)
        dumper = PlainListDumper(self.cls, self._tx)
        dumper.oid, dumper._text = PLAIN[plain]
        return dumper

    def dump(self, obj: list[Any]) -> Any:
        text = self._text
        if text is None:
            return super().dump(obj)
        return f"{{{','.join(['NULL' if item is None else text(item) for item in obj])}}}".encode()


def _plain_type(obj: list[Any]) -> type | None:
    types = set(map(type, obj)) - NONE
    only = types.pop() if len(types) == 1 else None
    if only is datetime and any(item is not None and item.tzinfo is None for item in obj):
        return None
    return only if only in PLAIN else None
