"""Prints the figures as a table, and writes them as JSON."""

import json
import math
import os
import platform
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.figures import Spread, number

HEADINGS = ("measurement", "ours", "floor", "rival", "ours/floor", "rival/ours", "goal", "met")
TEXT_WIDTH = 120


@dataclass(frozen=True)
class Row:
    name: str
    ours: Spread | float
    floor: Spread | float | None = None
    rival: Spread | float | None = None
    goal: str = ""
    met: bool | None = None
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """Further figures, in the JSON only."""
    more: str = ""
    """Figures after the name. The name is the same in every run, because `compare` finds rows by it."""
    more_is_better: bool = False
    """For rates and shares, unlike times."""

    @property
    def times_floor(self) -> float | None:
        return None if self.floor is None else _ratio(self.ours, self.floor)

    @property
    def times_rival(self) -> float | None:
        return None if self.rival is None else _ratio(self.rival, self.ours)


@dataclass(frozen=True)
class Section:
    name: str
    title: str
    """What the columns mean in this section, with the unit."""
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    load: tuple[float, float] = (0.0, 0.0)
    """Load average before and after. On a busy machine the figures are worse than those of the code alone."""
    took_s: float = 0.0
    failed: str | None = None
    """The error that ended the measurement. The rows are what it had measured until then."""


def _middle(value: Spread | float) -> float:
    return value.p50 if isinstance(value, Spread) else value


def _ratio(one: Spread | float, other: Spread | float) -> float | None:
    return _middle(one) / _middle(other) if _middle(other) else None


def table(sections: Sequence[Section], about: dict[str, Any]) -> str:
    lines: list[tuple[str, ...] | str] = [HEADINGS]
    for section in sections:
        lines += ["", *textwrap.wrap(section.title, TEXT_WIDTH)]
        lines += [_cells(row) for row in section.rows]
        lines += _paragraph(f"FAILED: {section.failed}") if section.failed else []
        load = f"Load average {section.load[0]:.1f} before, {section.load[1]:.1f} after; {section.took_s:.0f} s."
        lines += [line for note in (*section.notes, load) for line in _paragraph(note)]
    rows = [line for line in lines if isinstance(line, tuple)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    printed = [_aligned(line, widths) if isinstance(line, tuple) else line for line in lines]
    described = ", ".join(f"{name} {value}" for name, value in about.items())
    return "\n".join([*textwrap.wrap(described, TEXT_WIDTH), "", printed[0], "-" * len(printed[0]), *printed[1:]])


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, TEXT_WIDTH, initial_indent="    ", subsequent_indent="      ")


def _aligned(row: tuple[str, ...], widths: Sequence[int]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(row[1:6], widths[1:6], strict=True)]
    words = [cell.ljust(width) for cell, width in zip(row[6:], widths[6:], strict=True)]
    return "  ".join([row[0].ljust(widths[0]), *numbers, *words]).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    met = "" if row.met is None else "yes" if row.met else "NO"
    shown = [_shown(value) for value in (row.ours, row.floor, row.rival)]
    return (
        "  " + ", ".join(filter(None, [row.name, row.more])),
        *shown,
        _times(row.times_floor),
        _times(row.times_rival),
        row.goal,
        met,
    )


def _shown(value: Spread | float | None) -> str:
    if value is None:
        return "–"
    return value.shown() if isinstance(value, Spread) else number(value)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else "∞" if math.isinf(ratio) else f"{number(ratio)}x"


def write_json(path: Path, sections: Sequence[Section], about: dict[str, Any]) -> None:
    report = {"about": about, "sections": [_plain(section) for section in sections]}
    path.write_text(json.dumps(_finite(report), indent=2, ensure_ascii=False) + "\n")


def _plain(section: Section) -> dict[str, Any]:
    ratios = [{"ours_by_floor": row.times_floor, "rival_by_ours": row.times_rival} for row in section.rows]
    plain = asdict(section)
    plain["rows"] = [row | more for row, more in zip(plain["rows"], ratios, strict=True)]
    return plain


def _finite(value: Any) -> Any:
    """JSON has no infinity, so null stands for a result that never came."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def about(postgres: str, postgis: str, redis: str, quick: bool) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)),
        "Python": platform.python_version(),
        "PostgreSQL": postgres,
        "PostGIS": postgis,
        "Redis": redis,
        "psycopg": version("psycopg"),
        "SQLAlchemy": version("sqlalchemy"),
        "sizes": "quick, so the figures mean nothing" if quick else "full",
    }
