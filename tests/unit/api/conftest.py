from typing import Any

import pytest

from tests.support.api import FakeMatching, FakeServices, app_on_fakes


@pytest.fixture
def matching() -> FakeMatching:
    return FakeMatching()


@pytest.fixture(scope="session")
def standing_app() -> Any:
    """Made once, because building the app with its 80 routes takes longer than most tests."""
    return app_on_fakes(FakeMatching())


@pytest.fixture
def client(standing_app: Any, matching: FakeMatching) -> Any:
    services: FakeServices = standing_app.extensions["site"].services
    services.matching = matching
    return standing_app.test_client()
