from typing import Any

import pytest

from tests.support.api import FakeMatching, app_on_fakes


@pytest.fixture
def matching() -> FakeMatching:
    return FakeMatching()


@pytest.fixture
def client(matching: FakeMatching) -> Any:
    return app_on_fakes(matching).test_client()
