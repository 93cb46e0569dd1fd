"""A run is killed between any two of its statements. There is no half run, and the next one takes the list."""

from pathlib import Path
from typing import Any

import pytest

from app.api.services import Services
from tests.support import mishaps
from tests.support.changing_lists import WHAT, ChangingLists
from tests.support.depth import size

MOST = 300
SOME = size(suite=9, deep=1)
"""One of so many later statements; there are more than two hundred."""


@pytest.fixture
def lists(tmp_path: Path) -> ChangingLists:
    return ChangingLists(tmp_path)


@pytest.fixture
def environ(lists: ChangingLists) -> dict[str, Any]:
    return lists.environ


@pytest.mark.parametrize("place", ["sql.statement", "sql.commit", "sql.committed"])
def test_killed_run_is_whole_or_never_was(services: Services, lists: ChangingLists, place: str) -> None:
    lists.take(services)
    for passage in (*range(1, 5), *range(5, MOST, SOME)):
        lists.publish_next()
        died = mishaps.Step(services.settings, f"{place}=kill@{passage}", *WHAT).end().died
        lists.check_whole_or_never_was(services)
        lists.take(services)
        if not died:
            assert passage > 1, f"a run never passes {place}"
            return
    raise AssertionError(f"{MOST} passages did not reach the end of a run")
