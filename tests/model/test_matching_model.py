"""Compares matching with a reference in memory, over random sequences of deeds and faults.

Every run plays the same sequences. `MODEL_EXAMPLES=N` plays N random ones, or those of `--hypothesis-seed`, and
`MODEL_STEPS` sets their length.
"""

import logging
import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from app.api.services import Services
from app.matching.rules.matching_rules import MatchingRules
from tests.model.machine import MatchingMachine
from tests.model.worlds import World


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Suppresses tens of thousands of log lines about faults that the machine causes on purpose."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


def profile(examples: int, steps: int) -> settings:
    return settings(
        max_examples=int(os.environ.get("MODEL_EXAMPLES", examples)),
        stateful_step_count=int(os.environ.get("MODEL_STEPS", steps)),
        database=None,
        derandomize="MODEL_EXAMPLES" not in os.environ,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
        report_multiple_bugs=False,
    )


def test_matching_agrees_with_the_reference(services: Services) -> None:
    worlds: list[World] = []

    class OnRealStores(MatchingMachine):
        def make_world(self, rules: MatchingRules) -> World:
            worlds.append(World(rules, services))
            worlds[-1].clear()
            return worlds[-1]

        def teardown(self) -> None:
            super().teardown()
            if hasattr(self, "world"):
                worlds.pop().close()

    run_state_machine_as_test(OnRealStores, settings=profile(80, 40))
