"""The HTTP API on real stores, and functions that send requests to it as a person."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.api.services import Services
from app.bootstrap.api import create_app
from tests.support.world import World, authorization, settle_world


@pytest.fixture
def world(services: Services) -> World:
    return settle_world(services)


@pytest.fixture
def app(services: Services) -> Iterator[Any]:
    app = create_app(services)
    yield app


@pytest.fixture
def call(app: Any, services: Services, world: World) -> Any:
    def call(who: str, method: str, path: str, json: Any = None, **headers: str) -> Any:
        known = authorization(world, services, who)
        # Each call has its own client, so that threads can call at the same time.
        return app.test_client().open(path, method=method, json=json, headers=known | headers)

    return call


@pytest.fixture
def ask(call: Any) -> Any:
    """Sends a request as an administrator. Returns the status and the decoded body."""

    def ask(method: str, path: str, json: Any = None) -> tuple[int, Any]:
        response = call("admin", method, f"/api/v1{path}", json)
        return response.status_code, response.get_json(force=True) if response.data else None

    return ask
