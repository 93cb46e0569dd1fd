"""Shared by all state machines: the table of transitions, and functions that read it for code and SQL."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

State = TypeVar("State", bound=StrEnum)
TransitionTable = Mapping[State | None, frozenset[State]]
"""For each state, the states that it may change to; for None, the states in which a row may begin."""


class IllegalTransition(Exception):
    """The program tried a transition that the table does not have. This is a bug in the program."""


def check_transition(table: TransitionTable[State], current: State | None, target: State) -> None:
    """Writing the same state again is allowed, because it is not a transition."""
    if target is not current and target not in table[current]:
        raise IllegalTransition(f"{type(target).__name__} {current or 'of no row'} cannot become {target}.")


def new_state(table: TransitionTable[State], state: State) -> str:
    """The value of a state in which a row may begin."""
    check_transition(table, None, state)
    return state.value


def sources(table: TransitionTable[State], *targets: State) -> tuple[State, ...]:
    """The states that may change to each of `targets`, in the order of the table."""
    return tuple(state for state, following in table.items() if state is not None and following.issuperset(targets))
