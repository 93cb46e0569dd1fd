"""The modules of the console that need no page, in Node. `console_cases.mjs` has the cases."""

from pathlib import Path

import pytest

from tests.support import node_cases

CASES = Path(__file__).parent / "console_cases.mjs"


@pytest.fixture(scope="module")
def report() -> str:
    return node_cases.report(CASES)


@pytest.mark.parametrize("case", node_cases.names(CASES))
def test_console_module(report: str, case: str) -> None:
    node_cases.assert_passed(report, case)
