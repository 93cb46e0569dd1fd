"""The client for pages, in Node. `client_cases.mjs` has the cases."""

import re
import subprocess
from pathlib import Path

import pytest
from typed_client.client_files import NODE

CASES = Path(__file__).parent / "client_cases.mjs"


@pytest.fixture(scope="module")
def report() -> str:
    done = subprocess.run(
        [NODE, "--test", "--test-isolation=none", "--test-reporter=tap", CASES],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("case", re.findall(r'^test\("([^"]+)"', CASES.read_text(), re.MULTILINE))
def test_client(report: str, case: str) -> None:
    assert re.search(rf"^ok \d+ - {re.escape(case)}$", report, re.MULTILINE), report
