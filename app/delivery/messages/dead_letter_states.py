"""The state machine of a dead letter. Pure."""

from enum import StrEnum

from app.foundation.state_machine import TransitionTable, sources


class DeadLetterStatus(StrEnum):
    OPEN = "OPEN"
    REDRIVEN = "REDRIVEN"
    COVERED = "COVERED"
    """The recipient was reached through another channel or by a later attempt."""
    DISCARDED = "DISCARDED"
    """An operator decided that the notification need not arrive any more."""


DEAD_LETTER_TRANSITIONS: TransitionTable[DeadLetterStatus] = {
    None: frozenset({DeadLetterStatus.OPEN}),
    DeadLetterStatus.OPEN: frozenset({DeadLetterStatus.REDRIVEN, DeadLetterStatus.COVERED, DeadLetterStatus.DISCARDED}),
    DeadLetterStatus.REDRIVEN: frozenset(),
    DeadLetterStatus.COVERED: frozenset(),
    DeadLetterStatus.DISCARDED: frozenset(),
}

REDRIVABLE = sources(DEAD_LETTER_TRANSITIONS, DeadLetterStatus.REDRIVEN)
COVERABLE = sources(DEAD_LETTER_TRANSITIONS, DeadLetterStatus.COVERED)
DISCARDABLE = sources(DEAD_LETTER_TRANSITIONS, DeadLetterStatus.DISCARDED)
