"""What every state machine shares: a table of transitions, and the questions that code and SQL ask it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

State = TypeVar("State", bound=StrEnum)
TransitionTable = Mapping[State, frozenset[State]]
"""The states that each state may become."""


class IllegalTransition(Exception):
    """The program asked for a transition that the table does not have. This is a fault in the program."""


def check_transition(table: TransitionTable[State], current: State, target: State) -> None:
    """Writing the same state again is allowed, because it is no transition."""
    if target is not current and target not in table[current]:
        raise IllegalTransition(f"{type(current).__name__} {current} cannot become {target}.")


def sources(table: TransitionTable[State], target: State) -> tuple[State, ...]:
    """The states that may become `target`, in the order of the table."""
    return tuple(state for state, targets in table.items() if target in targets)
