"""The rules of matching against a reference of a few dozen lines, in memory and on the real stores.

The same days are played on every run. `MODEL_EXAMPLES` plays so many others, by chance or by `--hypothesis-seed`, and
`MODEL_STEPS` makes them longer.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from app.api.services import Services
from app.matching.rules import MatchingRules
from tests.model.machine import MatchingMachine
from tests.model.worlds import MemoryWorld, RealWorld, World


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Tens of thousands of lines that say what the machine did on purpose."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


def profile(examples: int, steps: int) -> settings:
    return settings(
        max_examples=int(os.environ.get("MODEL_EXAMPLES", examples)),
        stateful_step_count=int(os.environ.get("MODEL_STEPS", steps)),
        deadline=None,
        database=None,
        derandomize="MODEL_EXAMPLES" not in os.environ,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
        report_multiple_bugs=False,
    )


class InMemory(MatchingMachine):
    steps = 0
    statuses: ClassVar[Counter[str]] = Counter()

    def count(self, statuses: Counter[str]) -> None:
        InMemory.steps += 1
        InMemory.statuses += statuses

    def make_world(self, rules: MatchingRules) -> World:
        return MemoryWorld(rules)


def test_the_rules_hold_in_memory() -> None:
    run_state_machine_as_test(InMemory, settings=profile(300, 40))


def test_the_rules_hold_on_the_real_stores(services: Services) -> None:
    worlds: list[RealWorld] = []

    class OnRealStores(MatchingMachine):
        slack = timedelta(seconds=3)

        def make_world(self, rules: MatchingRules) -> World:
            worlds.append(RealWorld(rules, services))
            worlds[-1].clear()
            return worlds[-1]

        def teardown(self) -> None:
            super().teardown()
            if hasattr(self, "world"):
                worlds.pop().close()

    run_state_machine_as_test(OnRealStores, settings=profile(25, 30))
