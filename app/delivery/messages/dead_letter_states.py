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
    EXPIRED = "EXPIRED"
    """The message has lost its meaning: it would come too late, or its action was cancelled."""


DEAD_LETTER_TRANSITIONS: TransitionTable[DeadLetterStatus] = {
    None: frozenset({DeadLetterStatus.OPEN}),
    DeadLetterStatus.OPEN: frozenset(set(DeadLetterStatus) - {DeadLetterStatus.OPEN}),
    DeadLetterStatus.REDRIVEN: frozenset(),
    DeadLetterStatus.COVERED: frozenset(),
    DeadLetterStatus.DISCARDED: frozenset(),
    DeadLetterStatus.EXPIRED: frozenset(),
}

REDRIVABLE = sources(DEAD_LETTER_TRANSITIONS, DeadLetterStatus.REDRIVEN)
COVERABLE = sources(DEAD_LETTER_TRANSITIONS, DeadLetterStatus.COVERED)
DISCARDABLE = sources(DEAD_LETTER_TRANSITIONS, DeadLetterStatus.DISCARDED)
EXPIRABLE = sources(DEAD_LETTER_TRANSITIONS, DeadLetterStatus.EXPIRED)
