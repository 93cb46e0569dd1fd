"""The client for pages, in Node. `client_cases.mjs` has the cases."""

from pathlib import Path

import pytest

from tests.support import node_cases

CASES = Path(__file__).parent / "client_cases.mjs"


@pytest.fixture(scope="module")
def report() -> str:
    return node_cases.report(CASES)


@pytest.mark.parametrize("case", node_cases.names(CASES))
def test_client(report: str, case: str) -> None:
    node_cases.assert_passed(report, case)
