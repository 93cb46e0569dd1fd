"""Parts of statements that change a state, built from the transition tables. They are literals, because the planner
uses a partial index only for a statement that repeats its condition."""

from app.db.schema import one_of
from app.foundation.state_machine import new_state, sources
from app.matching.rules.states import HELD, OFFER_TRANSITIONS, OPEN, TASK_TRANSITIONS, OfferState, TaskStatus


def is_open(column: str = "status") -> str:
    return one_of(column, OPEN)


def is_held(column: str = "status") -> str:
    return one_of(column, HELD)


def is_searching(column: str = "status") -> str:
    return f"{column} = '{TaskStatus.PENDING}'"


def may_become_task(target: TaskStatus, column: str = "status") -> str:
    return one_of(column, sources(TASK_TRANSITIONS, target))


def may_become_offer(target: OfferState, column: str = "state") -> str:
    return one_of(column, sources(OFFER_TRANSITIONS, target))


def new_task(status: TaskStatus) -> str:
    return f"'{new_state(TASK_TRANSITIONS, status)}'"


def new_offer(state: OfferState) -> str:
    return f"'{new_state(OFFER_TRANSITIONS, state)}'"
