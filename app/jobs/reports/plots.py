"""Plots as SVG. A drawing is 360 wide, the width of a phone, so that its letters stay readable there; a wide page shows
it larger. Colours are classes of the page's style sheet."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 360
LEFT, RIGHT, TOP, BOTTOM = 44, 10, 12, 40
HEIGHT = 220
ACROSS, UP = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
ROW = 34
MOST_COLUMNS = 24
TICKS = 4


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    shown: str
    """The value in words."""
    colour: str = "good"


@dataclass(frozen=True)
class Column:
    label: str
    value: int


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]
    colour: str


def bars(title: str, rows: Sequence[Bar], full: float | None = None) -> str:
    """Horizontal bars, each under its label. `full` is the value of a bar that fills its row."""
    longest = full or max((row.value for row in rows), default=0) or 1
    drawn = [
        f'<text x="0" y="{at + 13}">{escape(_cut(row.label, 58 - len(row.shown)))}</text>'
        f'<text x="{WIDTH}" y="{at + 13}" class="end strong">{escape(row.shown)}</text>'
        f'<rect x="0" y="{at + 18}" width="{WIDTH}" height="9" rx="3" class="track"/>'
        f'<rect x="0" y="{at + 18}" width="{_bar_width(row.value / longest)}" height="9" rx="3" class="{row.colour}"/>'
        for at, row in ((place * ROW, row) for place, row in enumerate(rows))
    ]
    return _svg(title, ROW * len(rows), drawn)


def _bar_width(share: float) -> str:
    """What is not zero is at least visible."""
    return _at(max(share * WIDTH, 2.0) if share > 0 else 0.0)


def columns(title: str, data: Sequence[Column], below: str, number: Callable[[float], str], colour: str) -> str:
    """Vertical bars, with the axis of counts at the left."""
    top = nice_top(max((one.value for one in data), default=0))
    width = ACROSS / max(len(data), 1)
    every = math.ceil(len(data) * max((len(one.label) for one in data), default=1) * 7.5 / ACROSS) or 1
    drawn = _count_axis(top, number)
    for place, one in enumerate(data):
        x, height = LEFT + place * width, UP * one.value / top
        if one.value:
            height = max(height, 1.0)
            drawn.append(
                f'<rect x="{_at(x + width * 0.08)}" y="{_at(TOP + UP - height)}" width="{_at(width * 0.84)}"'
                f' height="{_at(height)}" class="{colour}"/>'
            )
        if place % every == 0:
            drawn.append(f'<text x="{_at(x + width / 2)}" y="{TOP + UP + 15}" class="mid">{escape(one.label)}</text>')
    drawn.append(_below(below))
    return _svg(title, HEIGHT, drawn)


def curves(
    title: str,
    lines: Sequence[Line],
    below: str,
    x_label: Callable[[float], str],
    y_label: Callable[[float], str],
    x_most: float,
    diagonal: str | None = None,
) -> str:
    """Lines over a share from 0 to 1. The legend names the lines inside, at the lower right or the upper left."""
    drawn = [part for tick in range(TICKS + 1) for part in _rule(tick / TICKS, y_label(tick / TICKS))]
    for tick in range(TICKS + 1):
        x = LEFT + ACROSS * tick / TICKS
        place = "mid" if tick < TICKS else "end"
        drawn.append(
            f'<text x="{_at(x)}" y="{TOP + UP + 15}" class="{place}">{escape(x_label(x_most * tick / 4))}</text>'
        )
    if diagonal is not None:
        drawn.append(f'<path d="M{LEFT} {TOP + UP}L{WIDTH - RIGHT} {TOP}" class="line faint"/>')
    for line in lines:
        points = [(LEFT + ACROSS * min(x / x_most, 1.0), TOP + UP * (1 - y)) for x, y in thinned(line.points)]
        path = "L".join(f"{_at(x)} {_at(y)}" for x, y in points)
        drawn.append(f'<path d="M{path}" class="line {line.colour}"/>')
    legend = [(line.name, line.colour) for line in lines] + ([(diagonal, "faint")] if diagonal is not None else [])
    left, first = (LEFT + 12, TOP + 18) if diagonal is not None else (WIDTH - RIGHT - 130, TOP + UP - 18 * len(legend))
    for place, (name, colour) in enumerate(legend):
        y = first + 18 * place
        drawn.append(f'<path d="M{left} {y - 4}h18" class="line {colour}"/>')
        drawn.append(f'<text x="{left + 24}" y="{y}">{escape(name)}</text>')
    drawn.append(_below(below))
    return _svg(title, HEIGHT, drawn)


def thinned(points: Sequence[tuple[float, float]], most: int = 600) -> list[tuple[float, float]]:
    """At most about this many points, evenly chosen, with the first and the last."""
    every = max(math.ceil(len(points) / most), 1)
    return [*points[:-1:every], *points[-1:]]


def binned(counts: Mapping[int, int], most: int = MOST_COLUMNS) -> list[Column]:
    """Counts by value as columns of equal width, from the lowest value to the highest, the empty ones included."""
    if not counts:
        return []
    low, high = min(counts), max(counts)
    size = next(size for size in _sizes() if high // size - low // size < most)
    found = dict.fromkeys(range(low // size, high // size + 1), 0)
    for value, count in counts.items():
        found[value // size] += count
    return [
        Column(str(place * size) if size == 1 else f"{place * size}–{place * size + size - 1}", count)
        for place, count in found.items()
    ]


def _sizes() -> list[int]:
    return [step * 10**power for power in range(12) for step in (1, 2, 5)]


def nice_top(most: float) -> int:
    """A round number, of which a quarter is whole, that is not below."""
    quarters = (step * 10**power // 10 for power in range(13) for step in (10, 15, 20, 25, 30, 40, 50, 75))
    return next(4 * quarter for quarter in quarters if 4 * quarter >= most)


def _count_axis(top: int, number: Callable[[float], str]) -> list[str]:
    return [part for tick in range(TICKS + 1) for part in _rule(tick / TICKS, number(top * tick / TICKS))]


def _rule(share: float, label: str) -> tuple[str, str]:
    y = TOP + UP * (1 - share)
    return (
        f'<path d="M{LEFT} {_at(y)}H{WIDTH - RIGHT}" class="rule"/>',
        f'<text x="{LEFT - 6}" y="{_at(y + 4)}" class="end">{escape(label)}</text>',
    )


def _below(label: str) -> str:
    return f'<text x="{_at(LEFT + ACROSS / 2)}" y="{HEIGHT - 6}" class="mid">{escape(label)}</text>'


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
