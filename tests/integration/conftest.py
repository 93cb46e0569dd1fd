"""Logs of tests that start parts of the service in their own process."""

from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from app.foundation.logs import configure_logs


@pytest.fixture(autouse=True)
def logs_to_open_stderr() -> None:
    """An earlier test that captured stderr may have left the logs on a file that is closed now."""
    configure_logs("INFO", as_json=False)


@pytest.fixture
def logs(logs_to_open_stderr: None) -> Iterator[list[Any]]:
    """All lines of the test, those of DEBUG too, as dictionaries."""
    configure_logs("DEBUG", as_json=False)
    with structlog.testing.capture_logs() as captured:
        yield captured
