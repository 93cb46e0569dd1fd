from hypothesis import given
from hypothesis import strategies as st

from app.jobs.reports.geohash import Cell
from app.jobs.reports.neighbourhoods import NOTHING, Need, Neighbourhood, neighbourhoods

FIRST = 0b1000000000000
CELLS = st.builds(lambda column, row: Cell(6, FIRST + column, FIRST + row), st.integers(0, 60), st.integers(0, 60))
NEEDS = st.builds(
    lambda elders, more, unmet: Need(elders, elders + more, min(unmet, elders + more), 0),
    st.integers(1, 8),
    st.integers(0, 9),
    st.integers(0, 9),
)
TOWNS = st.dictionaries(CELLS, NEEDS, max_size=30)
LEAST = st.integers(2, 12)


def need(elders: int) -> Need:
    return Need(elders, elders * 3, elders, 0)


def side_by_side(*elders: int) -> dict[Cell, Need]:
    """Cells with this many elders, far enough apart to share no parent."""
    return {Cell(6, place << 8, 0): need(count) for place, count in enumerate(elders)}


def total(groups: list[Neighbourhood]) -> Need:
    return sum((one.need for one in groups), NOTHING)


@given(TOWNS, LEAST)
def test_no_group_has_fewer_people_than_the_least(town: dict[Cell, Need], least: int) -> None:
    assert all(one.need.elders >= least for one in neighbourhoods(town.items(), least))


@given(TOWNS, LEAST)
def test_what_is_left_of_the_total_is_nobody_or_everybody(town: dict[Cell, Need], least: int) -> None:
    """So subtraction reveals nothing: either all elders are in some group, or no group is shown at all."""
    shown = neighbourhoods(town.items(), least)
    everybody = sum(town.values(), NOTHING)
    if everybody.elders < least:
        assert shown == []
    else:
        assert total(shown) == everybody


@given(TOWNS, LEAST)
def test_the_total_of_a_parent_cell_is_not_shown_beside_its_parts(town: dict[Cell, Need], least: int) -> None:
    shown = neighbourhoods(town.items(), least)
    assert all(one.rest == (one.cell is None or one.cell.precision < 6) for one in shown)
    assert len({one.cell for one in shown}) == len(shown)


def test_a_large_cell_is_shown_as_it_is() -> None:
    town = side_by_side(5, 9)
    assert [(one.cell, one.rest, one.need) for one in neighbourhoods(town.items(), 5)] == [
        (cell, False, found) for cell, found in sorted(town.items(), key=lambda item: item[0].name)
    ]


def test_small_neighbours_are_joined_under_their_parent() -> None:
    town = {Cell(6, 64, 64): need(3), Cell(6, 65, 64): need(2), Cell(6, 66, 64): need(7)}
    large, rest = sorted(neighbourhoods(town.items(), 5), key=lambda one: one.rest)
    assert (large.cell, large.need) == (Cell(6, 66, 64), need(7))
    assert (rest.cell, rest.need) == (Cell(6, 64, 64).parent, need(5))


def test_lonely_cells_are_joined_as_elsewhere() -> None:
    shown = neighbourhoods(side_by_side(9, 3, 2).items(), 5)
    assert [(one.cell is None, one.need.elders) for one in shown] == [(False, 9), (True, 5)]


def test_the_smallest_group_covers_an_elsewhere_that_is_too_small() -> None:
    shown = neighbourhoods(side_by_side(9, 6, 2).items(), 5)
    assert [(one.cell is None, one.need.elders) for one in shown] == [(False, 9), (True, 8)]


def test_nothing_is_shown_of_too_few_people() -> None:
    assert neighbourhoods(side_by_side(2, 2).items(), 5) == []
    assert neighbourhoods([], 5) == []
