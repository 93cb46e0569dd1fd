"""Shared by all state machines: the table of transitions, and functions that read it for code and SQL."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

State = TypeVar("State", bound=StrEnum)
TransitionTable = Mapping[State, frozenset[State]]
"""For each state, the states that it may change to."""


class IllegalTransition(Exception):
    """The program tried a transition that the table does not have. This is a bug in the program."""


def check_transition(table: TransitionTable[State], current: State, target: State) -> None:
    """Writing the same state again is allowed, because it is not a transition."""
    if target is not current and target not in table[current]:
        raise IllegalTransition(f"{type(current).__name__} {current} cannot become {target}.")


def sources(table: TransitionTable[State], target: State) -> tuple[State, ...]:
    """The states that may change to `target`, in the order of the table."""
    return tuple(state for state, targets in table.items() if target in targets)
