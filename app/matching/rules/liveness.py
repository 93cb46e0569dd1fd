"""SQL conditions on offers. A live offer is PENDING. The student can answer it until its deadline. After that it is
overdue, and the next statement that expires offers closes it.

A student has one live offer at most. A partial unique index allows a task only one as well, but nothing else depends on
that: everything here and above works with several live offers of one task.
"""

from app.matching.rules.states import OfferState

NOW = "clock_timestamp()"


def live(offer: str) -> str:
    # A literal, because the planner uses a partial index only for a statement that repeats its condition.
    return f"{offer}.state = '{OfferState.PENDING}'"


def answerable(offer: str, now: str = NOW) -> str:
    return f"{live(offer)} AND {offer}.deadline > {now}"


def past_deadline(offer: str, now: str = NOW) -> str:
    return f"{offer}.deadline <= {now}"


def overdue(offer: str, now: str = NOW) -> str:
    return f"{live(offer)} AND {past_deadline(offer, now)}"
