"""Figures by neighbourhood, without those of fewer than `least` people.

Each elder is counted in one cell, so the groups are a partition of the elders and their figures add up to the totals. A
cell with too few people is joined with the others of its parent cell, up to two levels, and then with "elsewhere".
Whoever subtracts all shown groups from the totals gets elsewhere; so if elsewhere itself has too few people, the
smallest shown group is joined with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.jobs.reports.geohash import Cell

LEVELS = 2
"""How many letters of the geohash a cell may lose."""


@dataclass(frozen=True)
class Need:
    elders: int
    tasks: int
    unmet: int
    cancelled: int

    def __add__(self, other: "Need") -> "Need":
        return Need(
            self.elders + other.elders,
            self.tasks + other.tasks,
            self.unmet + other.unmet,
            self.cancelled + other.cancelled,
        )

    @property
    def unmet_share(self) -> float:
        return self.unmet / self.tasks


NOTHING = Need(0, 0, 0, 0)


@dataclass(frozen=True)
class Neighbourhood:
    cell: Cell | None
    """None is elsewhere."""
    rest: bool
    """The cell without those parts of it that are shown by themselves."""
    need: Need

    @property
    def name(self) -> str | None:
        return self.cell.name if self.cell else None


def neighbourhoods(cells: Iterable[tuple[Cell, Need]], least: int) -> list[Neighbourhood]:
    """Sorted by name, elsewhere last. Empty if there are fewer than `least` people in all."""
    small, shown = _split(dict(cells), least, rest=False)
    for _ in range(LEVELS):
        parents: dict[Cell, Need] = defaultdict(lambda: NOTHING)
        for cell, need in small.items():
            parents[cell.parent if cell.precision > 1 else cell] += need
        small, more = _split(parents, least, rest=True)
        shown += more
    elsewhere = sum(small.values(), NOTHING)
    while 0 < elsewhere.elders < least and shown:
        smallest = min(shown, key=lambda one: (one.need.elders, one.need.tasks, one.cell))
        shown.remove(smallest)
        elsewhere += smallest.need
    shown.sort(key=lambda one: (one.name or "", one.rest))
    return [*shown, Neighbourhood(None, True, elsewhere)] if elsewhere.elders >= least else shown


def _split(cells: dict[Cell, Need], least: int, *, rest: bool) -> tuple[dict[Cell, Need], list[Neighbourhood]]:
    small = {cell: need for cell, need in cells.items() if need.elders < least}
    large = [Neighbourhood(cell, rest, need) for cell, need in cells.items() if need.elders >= least]
    return small, large


def by_unmet(groups: Sequence[Neighbourhood]) -> list[Neighbourhood]:
    """Most unmet tasks first, because the share of a small group is mostly chance; elsewhere last."""
    return sorted(groups, key=lambda one: (one.cell is None, -one.need.unmet, one.name or ""))
