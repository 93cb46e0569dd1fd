"""Parts of statements that change a state, built from the transition tables. They are literals, because the planner
uses a partial index only for a statement that repeats its condition."""

from collections.abc import Iterable
from enum import StrEnum

from app.matching.states import (
    OfferState,
    TaskStatus,
    check_offer_transition,
    check_task_transition,
    offer_sources,
    task_sources,
)


def one_state_of(column: str, states: Iterable[StrEnum]) -> str:
    """`state = 'PENDING'`, or `state IN (…)` for several states."""
    literals = [f"'{state}'" for state in sorted(states)]
    return f"{column} = {literals[0]}" if len(literals) == 1 else f"{column} IN ({', '.join(literals)})"


def may_become_task(target: TaskStatus, column: str = "status") -> str:
    return one_state_of(column, task_sources(target))


def may_become_offer(target: OfferState, column: str = "state") -> str:
    return one_state_of(column, offer_sources(target))


def new_task(status: TaskStatus) -> str:
    check_task_transition(None, status)
    return f"'{status}'"


def new_offer(state: OfferState) -> str:
    check_offer_transition(None, state)
    return f"'{state}'"
