"""The metadata that holds all tables, and helpers for declaring them."""

from collections.abc import Collection
from enum import StrEnum
from typing import Any, cast

from sqlalchemy import MetaData
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType

from app.foundation.state_machine import TransitionTable

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_name)s_idx",
    }
)


class GeographyPoint(UserDefinedType[Any]):
    """A place on the earth. GeoAlchemy's type would do, but a fifth of the start of every process is its import, and
    all statements about places are written in SQL."""

    cache_ok = True

    def __init__(self, *_reflected: str) -> None: ...

    def get_col_spec(self, **_: Any) -> str:
        return "geography(Point,4326)"


cast("dict[str, Any]", ischema_names)["geography"] = GeographyPoint


def one_of(column: str, values: Collection[StrEnum]) -> str:
    """A condition with literals, because the planner uses a partial index only for values that it can see."""
    if not values:
        raise ValueError(f"No value is allowed in {column}.")
    literals = [repr(value.value) for value in type(next(iter(values))) if value in values]
    return f"{column} IN ({', '.join(literals)})"


def may_become(table: TransitionTable[Any], current: str, target: str) -> str:
    """A condition on two columns with states. The same state is allowed, because it is not a transition."""
    pairs = [f"('{state}', '{following}')" for state in table if state for following in sorted(table[state])]
    return f"({current} = {target} OR ({current}, {target}) IN ({', '.join(pairs)}))"
