"""The metric of missed deadlines counts exactly those that only the sweep finds, because it alerts operators."""

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
    """A queue that no thread settles."""
    return DueTasks(services.matching.runner, MatcherMetrics(), batch=100)


def missed(services: Services, due: DueTasks, clockwork: Clockwork | None) -> set[UUID]:
    return MissedDeadlines(services.matching.stores, clockwork, services.clock, due, 100).find()


@pytest.fixture
def overdue(town: Neighbourhood) -> UUID:
    """A task that is overdue in PostgreSQL, with its first deadline still in Redis."""
    town.students(10, 20)
    task_id = town.press()
    town.age(task_id, 700)
    written_long_ago(town, task_id)
    return task_id


def written_long_ago(town: Neighbourhood, task_id: UUID) -> None:
    town.run("UPDATE tasks SET updated_at = updated_at - interval '700 s' WHERE id = :id", id=task_id)


def write_deadline(services: Services, task_id: UUID, next_step_at: datetime) -> None:
    services.clockwork.apply([TaskKeys(task_id, next_step_at=next_step_at)], services.clock.now())


def test_task_that_is_absent_or_too_late_in_redis_counts_as_missed(
    services: Services, town: Neighbourhood, overdue: UUID, due: DueTasks
) -> None:
    assert missed(services, due, services.clockwork) == {overdue}
    town.redis.flushdb()
    assert missed(services, due, services.clockwork) == {overdue}


def test_task_that_the_ticker_will_claim_or_has_claimed_is_not_missed(
    services: Services, overdue: UUID, due: DueTasks
) -> None:
    write_deadline(services, overdue, datetime(2026, 1, 1, tzinfo=UTC))
    assert missed(services, due, services.clockwork) == set()
    services.clockwork.claim_due(services.clock.now(), 10)
    assert missed(services, due, services.clockwork) == set()


def test_due_task_counts_as_missed_without_ticker_or_redis(services: Services, overdue: UUID, due: DueTasks) -> None:
    write_deadline(services, overdue, datetime(2026, 1, 1, tzinfo=UTC))
    assert missed(services, due, None) == {overdue}
    nowhere: Any = {"redis_url": NOBODY_LISTENS}
    alone = build_services(services.settings.model_copy(update=nowhere), role="test", pool_size=2)
    assert missed(alone, due, alone.clockwork) == {overdue}
    alone.close()


def test_task_whose_write_to_redis_is_under_way_is_not_missed(
    services: Services, town: Neighbourhood, overdue: UUID, due: DueTasks
) -> None:
    town.run("UPDATE tasks SET updated_at = clock_timestamp() + interval '1 hour' WHERE id = :id", id=overdue)
    assert missed(services, due, services.clockwork) == set()


def test_task_that_is_queued_or_already_settled_is_not_missed(
    services: Services, town: Neighbourhood, overdue: UUID, due: DueTasks
) -> None:
    due.add([overdue])
    assert missed(services, due, services.clockwork) == set()
    town.advance(overdue)
    other = DueTasks(services.matching.runner, MatcherMetrics(), batch=100)
    assert missed(services, other, services.clockwork) == set()
