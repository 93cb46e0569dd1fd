"""The promises of `docs/architecture.md`, and the form of a question about one of them."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID


class Promise(StrEnum):
    ENDS = "1. Every request ends, and its people get a message."
    ONE_AT_A_TIME = "2. One student for a task; one live offer and one open task for a student."
    DEADLINE = "3. A deadline acts when it falls due."
    NOTHING_LOST = "4. Nothing is lost, and nobody is notified twice."
    LISTS = "People and consumers follow the lists of the roster."
    KEPT_VALUES = "Values that are kept twice agree."


@dataclass(frozen=True)
class Question:
    """A query that returns one row for each violation. Its columns that end in `_id` are shown; others help tests."""

    name: str
    promise: Promise
    sql: str
    means: str
    """What a violation means."""
    advice: str
    """What an operator does next."""


@dataclass(frozen=True)
class AskedPeriod:
    """The parameters of the questions."""

    since: UUID
    """The smallest id of a task that is looked at. Tasks that are open are always looked at."""
    noticed_since: UUID
    """The same for questions about notices, which retention forgets earlier than tasks."""
    grace_s: float = 60.0
    """How long something may be overdue."""
    late_s: float = 30.0
    """How long after its deadline an offer may have been closed."""
    offer_ttl_s: float = 600.0
    time_zone: str = "Europe/Istanbul"

    @property
    def values(self) -> dict[str, Any]:
        return asdict(self)
