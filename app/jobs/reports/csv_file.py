"""CSV for spreadsheets: UTF-8 with a byte order mark, without which Excel garbles Turkish letters."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

# A spreadsheet takes text that begins with one of these for a formula, and a formula can read and send other cells.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_csv(path: Path, titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(titles)
        writer.writerows([cell(value) for value in row] for row in rows)


def cell(value: object) -> object:
    """Text that looks like a formula gets an apostrophe in front, which spreadsheets take as "this is text"."""
    if isinstance(value, str) and value.lstrip(" ").startswith(FORMULA):
        return f"'{value}"
    return "" if value is None else value
