"""A run is killed between any two of its statements. There is no half run, and the next one takes the list."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.users.models import Caller, Role
from tests.support import mishaps
from tests.support.depth import size
from tests.support.lists import line, packed_students, turkish_id

WHAT = ("sync_roster", Caller(0, Role.ADMIN, "", "tr", None), None, "")
MOST = 300
SOME = size(suite=9, deep=1)
"""One of so many later statements; there are more than two hundred."""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, Any]:
    lists = {name: str(tmp_path / f"{name}.zip") for name in ("enrolment", "clearance")}
    sources = json.dumps({"students": lists})
    return {"roster_dir": str(tmp_path / "roster"), "roster_sources": sources, "roster_removed_floor": 1000}


def write_lists(folder: Path, numbers: range) -> None:
    for name in ("enrolment", "clearance"):
        packed_students(folder / f"{name}.zip", [line(number) for number in numbers])


def people(numbers: range) -> set[str]:
    return {turkish_id(number) for number in numbers}


def found(services: Services) -> tuple[set[str], list[tuple[int, int, str]]]:
    with services.db.reading() as conn:
        rows = set(conn.execute(text("SELECT identifier FROM roster_rows")).scalars())
        changes = conn.execute(text("SELECT position, change_type, identifier FROM roster_changes ORDER BY position"))
        return rows, [(row.position, row.change_type, row.identifier) for row in changes]


def in_service(services: Services) -> tuple[set[str], int]:
    """Whose users are active, and how many still have to follow their list."""
    with services.db.reading() as conn:
        active = conn.execute(text("SELECT identifier FROM roster_people p JOIN users u ON u.id = user_id AND active"))
        return set(active.scalars()), conn.execute(text("SELECT count(*) FROM roster_to_apply")).scalar_one()


@pytest.mark.parametrize("place", ["sql.statement", "sql.commit", "sql.committed"])
def test_killed_run_is_whole_or_never_was(services: Services, tmp_path: Path, place: str) -> None:
    write_lists(tmp_path, range(20))
    mishaps.do(services, *WHAT)
    for turn, passage in enumerate((*range(1, 5), *range(5, MOST, SOME)), start=1):
        before, after = (people(range(first, first + 20)) for first in (turn - 1, turn))
        write_lists(tmp_path, range(turn, turn + 20))
        died = mishaps.Step(services.settings, f"{place}=kill@{passage}", *WHAT).end().died
        rows, changes = found(services)
        assert (rows, len(changes)) in ((before, 2 * turn - 2), (after, 2 * turn)), "one is added, and one removed"
        assert [position for position, _, _ in changes] == list(range(1, len(changes) + 1))
        mishaps.do(services, *WHAT)
        assert (found(services)[0], len(found(services)[1])) == (after, 2 * turn)
        assert in_service(services) == (after, 0)
        if not died:
            assert passage > 1, f"a run never passes {place}"
            return
    raise AssertionError(f"{MOST} passages did not reach the end of a run")
