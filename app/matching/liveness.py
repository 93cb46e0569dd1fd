"""Which offers are live. A live offer is PENDING: it occupies its task and its student, through partial unique indexes,
until a statement closes it. A student can answer it until its deadline. After that it is overdue, and the next
statement that expires offers closes it."""

from app.matching.states import OfferState

NOW = "clock_timestamp()"


def live(offer: str) -> str:
    # A literal, because the partial indexes are used only by statements that repeat their condition.
    return f"{offer}.state = '{OfferState.PENDING}'"


def answerable(offer: str, now: str = NOW) -> str:
    return f"{live(offer)} AND {offer}.deadline > {now}"


def past_deadline(offer: str, now: str = NOW) -> str:
    return f"{offer}.deadline <= {now}"


def overdue(offer: str, now: str = NOW) -> str:
    return f"{live(offer)} AND {past_deadline(offer, now)}"
