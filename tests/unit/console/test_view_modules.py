"""The modules of views of the console that need no page, in Node. `view_cases.mjs` has the cases."""

from pathlib import Path

import pytest

from tests.support import node_cases

CASES = Path(__file__).parent / "view_cases.mjs"


@pytest.fixture(scope="module")
def report() -> str:
    return node_cases.report(CASES)


@pytest.mark.parametrize("case", node_cases.names(CASES))
def test_view_module(report: str, case: str) -> None:
    node_cases.assert_passed(report, case)
