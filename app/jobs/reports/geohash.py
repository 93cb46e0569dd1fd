"""Geohash cells as numbers of a column and a row. PostgreSQL computes them faster than the text, and the parent of a
cell is a shift."""

from typing import NamedTuple, Self

LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
BITS = 5
"""Of each letter; they alternate between longitude and latitude, and longitude is first."""


class Cell(NamedTuple):
    precision: int
    column: int
    row: int

    @property
    def parent(self) -> Self:
        columns, rows = bits(self.precision)
        fewer_columns, fewer_rows = bits(self.precision - 1)
        return type(self)(self.precision - 1, self.column >> (columns - fewer_columns), self.row >> (rows - fewer_rows))

    @property
    def middle(self) -> tuple[float, float]:
        """Latitude and longitude."""
        columns, rows = bits(self.precision)
        return (self.row + 0.5) * 180 / 2**rows - 90, (self.column + 0.5) * 360 / 2**columns - 180

    @property
    def name(self) -> str:
        columns, rows = bits(self.precision)
        number = 0
        for turn in range(columns + rows):
            if turn % 2 == 0:
                columns -= 1
                bit = self.column >> columns & 1
            else:
                rows -= 1
                bit = self.row >> rows & 1
            number = number << 1 | bit
        digits = (number >> BITS * place & 31 for place in reversed(range(self.precision)))
        return "".join(LETTERS[digit] for digit in digits)


def bits(precision: int) -> tuple[int, int]:
    """The bits of longitude and of latitude."""
    return (precision * BITS + 1) // 2, precision * BITS // 2


def column_sql(location: str, precision: int) -> str:
    columns, _ = bits(precision)
    return _index(f"ST_X({location}::geometry)", 180, 360, columns)


def row_sql(location: str, precision: int) -> str:
    _, rows = bits(precision)
    return _index(f"ST_Y({location}::geometry)", 90, 180, rows)


def _index(degrees: str, offset: int, range_: int, bits_: int) -> str:
    size = 1 << bits_
    # `least`, because the last cell includes its border.
    return f"least(floor(({degrees} + {offset}::float8) * {size / range_!r}::float8)::bigint, {size - 1})"
