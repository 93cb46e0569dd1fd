"""The kinds of notices, and the form of names in them. The texts are templates of delivery."""

from enum import StrEnum


class NoticeKind(StrEnum):
    """Apps get the kind as `type`."""

    OFFER = "OFFER"
    OFFER_WITHDRAWN = "OFFER_WITHDRAWN"
    ON_THE_WAY = "ON_THE_WAY"
    STARTED = "STARTED"
    COMPLETED = "COMPLETED"
    SEARCHING_AGAIN = "SEARCHING_AGAIN"
    NOBODY_FOUND = "NOBODY_FOUND"
    CANCELLED = "CANCELLED"
    ASSIGNED_TO_YOU = "ASSIGNED_TO_YOU"
    RELEASED = "RELEASED"
    NOBODY_FOUND_FOR = "NOBODY_FOUND_FOR"
    NOT_STARTED = "NOT_STARTED"
    NOT_COMPLETED = "NOT_COMPLETED"

    @property
    def plan(self) -> str:
        """The key of the plan that delivers the notice."""
        return f"matching.{self.value.lower()}"


def first_name(name: str) -> str:
    """The first word of a name: "Ayşe" for "Ayşe Nur Yılmaz"."""
    return name.split()[0] if name.split() else name
