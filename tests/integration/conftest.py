"""Logs of tests that start parts of the service in their own process."""

import pytest

from app.foundation.logs import configure_logs


@pytest.fixture(autouse=True)
def logs_to_open_stderr() -> None:
    """An earlier test that captured stderr may have left the logs on a file that is closed now."""
    configure_logs("INFO", as_json=False)
