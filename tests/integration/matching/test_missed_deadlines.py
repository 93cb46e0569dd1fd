"""Deadlines that only the sweep finds are counted, and nothing else is: an operator looks there for trouble."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.api.services import Services
from app.bootstrap.build_services import build_services
from app.matching.due import DueTasks
from app.matching.metrics import MatcherMetrics
from app.matching.missed_deadlines import MissedDeadlines
from app.redis_store.contract import Clockwork, TaskKeys
from tests.support.api import NOBODY_LISTENS
from tests.support.matching import Neighbourhood


@pytest.fixture
def due(services: Services) -> DueTasks:
    """Nobody takes them from here."""
    return DueTasks(services.matching.runner, MatcherMetrics(), batch=100)


def missed(services: Services, due: DueTasks, clockwork: Clockwork | None) -> set[UUID]:
    return MissedDeadlines(services.matching.stores, clockwork, services.clock, due, 100).find()


@pytest.fixture
def overdue(town: Neighbourhood) -> UUID:
    """Redis still has the deadline that it was told at first."""
    town.students(10, 20)
    task_id = town.press()
    town.age(task_id, 700)
    written_long_ago(town, task_id)
    return task_id


def written_long_ago(town: Neighbourhood, task_id: UUID) -> None:
    town.run("UPDATE tasks SET updated_at = updated_at - interval '700 s' WHERE id = :id", id=task_id)


def tell(services: Services, task_id: UUID, next_step_at: datetime) -> None:
    services.clockwork.apply([TaskKeys(task_id, next_step_at=next_step_at)], services.clock.now())


def test_what_redis_has_forgotten_or_has_wrong_is_missed(
    services: Services, town: Neighbourhood, overdue: UUID, due: DueTasks
) -> None:
    assert missed(services, due, services.clockwork) == {overdue}
    town.redis.flushdb()
    assert missed(services, due, services.clockwork) == {overdue}


def test_what_the_ticker_has_before_it_or_in_hand_is_not(services: Services, overdue: UUID, due: DueTasks) -> None:
    tell(services, overdue, datetime(2026, 1, 1, tzinfo=UTC))
    assert missed(services, due, services.clockwork) == set()
    services.clockwork.claim_due(services.clock.now(), 10)
    assert missed(services, due, services.clockwork) == set()


def test_without_a_ticker_or_without_redis_nobody_else_brings_it(
    services: Services, overdue: UUID, due: DueTasks
) -> None:
    tell(services, overdue, datetime(2026, 1, 1, tzinfo=UTC))
    assert missed(services, due, None) == {overdue}
    nowhere: Any = {"redis_url": NOBODY_LISTENS}
    alone = build_services(services.settings.model_copy(update=nowhere), role="test", pool_size=2)
    assert missed(alone, due, alone.clockwork) == {overdue}
    alone.close()


def test_what_redis_is_just_being_told_of_is_not_missed(
    services: Services, town: Neighbourhood, overdue: UUID, due: DueTasks
) -> None:
    town.run("UPDATE tasks SET updated_at = clock_timestamp() + interval '1 hour' WHERE id = :id", id=overdue)
    assert missed(services, due, services.clockwork) == set()


def test_what_is_known_here_or_has_gone_on_is_not_missed(
    services: Services, town: Neighbourhood, overdue: UUID, due: DueTasks
) -> None:
    due.add([overdue])
    assert missed(services, due, services.clockwork) == set()
    town.advance(overdue)
    other = DueTasks(services.matching.runner, MatcherMetrics(), batch=100)
    assert missed(services, other, services.clockwork) == set()
