"""Each attack is made on real stores, and ends with a check of the promises."""

from collections.abc import Iterator

import pytest

from app.api.services import Services
from app.bootstrap.matcher import build_matcher
from app.foundation.logs import configure_logs
from app.matching.role import Matcher
from tests.support.matching import Neighbourhood, town_that_keeps_its_promises


@pytest.fixture(autouse=True)
def logs_go_to_stderr() -> None:
    """An earlier test that captured stderr may have left the logs on a file that is closed now."""
    configure_logs("INFO", as_json=False)


@pytest.fixture
def town(services: Services) -> Iterator[Neighbourhood]:
    with town_that_keeps_its_promises(services) as built:
        yield built


@pytest.fixture
def matcher(services: Services) -> Iterator[Matcher]:
    """Not started: tests call its parts."""
    built = build_matcher(services)
    yield built
    built.events.close()
