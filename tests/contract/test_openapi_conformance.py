"""Schemathesis reads `/openapi.json` and tries what it allows and what it forbids, as four different people."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from app.api.services import Services
from app.bootstrap.api import create_app
from tests.support.depth import size
from tests.support.event_streams import first_piece_of_streams
from tests.support.world import authorization, settle_world

ALWAYS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]


def valid_data_is_refused_only_for_what_no_schema_can_say(_context: Any, response: Any, _case: Any) -> None:
    """Such as a cursor that was never given out, or an elder who does not exist."""
    assert response.status_code != 400 or response.json()["code"] == "invalid_value", response.json()


CHECKS = {
    GenerationMode.POSITIVE: [*ALWAYS, valid_data_is_refused_only_for_what_no_schema_can_say],
    GenerationMode.NEGATIVE: [*ALWAYS, negative_data_rejection],
}
LONG = 200
WHO = ("nobody", "elder", "student", "admin")
FEW_AND_THE_SAME_EACH_TIME = settings(
    max_examples=size(suite=4, deep=12),
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def environ() -> dict[str, Any]:
    return {"locations_per_minute": 100_000, "tasks_per_minute": 100_000, "tasks_per_hour": 100_000}


@pytest.fixture
def app(services: Services) -> Iterator[Any]:
    with first_piece_of_streams(create_app(services)) as app:
        yield app


@pytest.mark.parametrize("mode", list(CHECKS), ids=lambda mode: mode.value)
def test_the_service_does_what_its_description_says(app: Any, services: Services, mode: GenerationMode):
    world = settle_world(services)
    headers = [authorization(world, services, who) for who in WHO]
    known: dict[str, Any] = {"taskId": world.task_id, "userId": world.ids["elder"]}
    known |= {"notificationId": world.notification_id, **world.entries}
    description = schemathesis.openapi.from_dict(without_long_limits(app.test_client().get("/openapi.json").get_json()))
    description.app = app
    # Random bytes are no archive: tests/integration/api/test_api_roster.py pushes real ones.
    description = description.exclude(path_regex="/lists/")
    for result in description.get_all_operations():
        # Random ids are unknown to the service; with known ones the calls reach what they are for.
        _try_out(result.ok(), mode, headers, known if mode is GenerationMode.POSITIVE else {})


def without_long_limits(node: Any) -> Any:
    """The description without the lengths of long texts, which tests of validation try. Schemathesis makes an automaton
    of a pattern and a length together: 450 MB, never given back, and 15 s for the 32,768 characters of a message."""
    if isinstance(node, list):
        return [without_long_limits(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: without_long_limits(value)
        for key, value in node.items()
        if not (key == "maxLength" and isinstance(value, int) and value > LONG)
    }


def _try_out(operation: Any, mode: GenerationMode, headers: list[dict[str, str]], known: dict[str, Any]) -> None:
    """Each case is sent once for each person, because making a case takes longer than sending it."""

    @FEW_AND_THE_SAME_EACH_TIME
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Any) -> None:
        # A query parameter whose value is an empty list is not in the URL, so that nothing is wrong with the URL.
        assume([] not in (case.query or {}).values())
        for word in known.keys() & (case.path_parameters or {}).keys():
            case.path_parameters[word] = str(known[word])
        for of_one in headers:
            case.call_and_validate(headers=of_one, checks=CHECKS[mode])

    # A call without parameters and body has nothing that could be wrong.
    with contextlib.suppress(Unsatisfiable):
        call()
