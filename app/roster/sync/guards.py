"""Decides which changes of a list are held back, because a list that was cut short or emptied looks like a list from
which everybody has left."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Held(StrEnum):
    """Why changes are held back."""

    TOO_SHORT = "too_short"
    TOO_MANY_REMOVED = "too_many_removed"
    TOO_MANY_REMOVED_THIS_WEEK = "too_many_removed_this_week"
    TOO_MANY_MODIFIED = "too_many_modified"
    TOO_MANY_MODIFIED_THIS_WEEK = "too_many_modified_this_week"
    TOO_MANY_BLANKED = "too_many_blanked"
    TOO_MANY_BLANKED_THIS_WEEK = "too_many_blanked_this_week"


@dataclass(frozen=True)
class GuardLimits:
    removed_percent: float
    floor: int
    """So many may always leave or change, whatever their share is."""
    least_rows: int
    """Of a list that is shorter, nobody is removed."""
    removed_percent_of_week: float
    modified_percent: float
    modified_percent_of_week: float
    blanked_percent: float
    """Of the rows in which a column had a value."""
    blanked_percent_of_week: float


@dataclass(frozen=True)
class WeekBefore:
    """What earlier runs of the last seven days did to one kind."""

    rows: int
    """At the beginning of those seven days."""
    removed: int = 0
    modified: int = 0
    blanked: Mapping[str, int] = field(default_factory=dict[str, int])
    """By column."""


@dataclass(frozen=True)
class ListChanges:
    """Counts of one kind in one run."""

    before: int
    """Rows of the list before."""
    after: int
    """Rows of the new list."""
    added: int
    modified: int
    removed: int
    week: WeekBefore
    filled: Mapping[str, int]
    """By column, how many rows had a value."""
    blanked: Mapping[str, int]
    """By column, in how many of them it is empty now."""


def removals_held_back(changes: ListChanges, limits: GuardLimits) -> Held | None:
    """None if the removals are applied."""
    if not changes.removed:
        return None
    if changes.after < limits.least_rows:
        return Held.TOO_SHORT
    if changes.removed <= limits.floor:
        return _of_week(changes, limits)
    if _exceeds(changes.removed, changes.before, limits.removed_percent):
        return Held.TOO_MANY_REMOVED
    return _of_week(changes, limits)


def _of_week(changes: ListChanges, limits: GuardLimits) -> Held | None:
    total = changes.week.removed + changes.removed
    if total > limits.floor and _exceeds(total, changes.week.rows, limits.removed_percent_of_week):
        return Held.TOO_MANY_REMOVED_THIS_WEEK
    return None


def modifications_held_back(changes: ListChanges, limits: GuardLimits) -> Held | None:
    """None if the modifications are applied."""
    if changes.modified <= limits.floor:
        return None
    if _exceeds(changes.modified, changes.before, limits.modified_percent):
        return Held.TOO_MANY_MODIFIED
    if blanked_columns(changes, limits):
        return Held.TOO_MANY_BLANKED
    if _exceeds(changes.week.modified + changes.modified, changes.week.rows, limits.modified_percent_of_week):
        return Held.TOO_MANY_MODIFIED_THIS_WEEK
    if columns_blanked_this_week(changes, limits):
        return Held.TOO_MANY_BLANKED_THIS_WEEK
    return None


def blanked_columns(changes: ListChanges, limits: GuardLimits) -> Collection[str]:
    return [
        column
        for column, blanked in changes.blanked.items()
        if blanked > limits.floor and _exceeds(blanked, changes.filled.get(column, 0), limits.blanked_percent)
    ]


def any_above_floor(blanked: Mapping[str, int], week: WeekBefore, limits: GuardLimits) -> bool:
    """Whether any column was emptied so often that its share matters."""
    return any(count and count + week.blanked.get(column, 0) > limits.floor for column, count in blanked.items())


def columns_blanked_this_week(changes: ListChanges, limits: GuardLimits) -> Collection[str]:
    """Only of those that this run empties further."""
    found: list[str] = []
    for column, blanked in changes.blanked.items():
        earlier = changes.week.blanked.get(column, 0)
        total, filled = earlier + blanked, earlier + changes.filled.get(column, 0)
        if blanked and total > limits.floor and _exceeds(total, filled, limits.blanked_percent_of_week):
            found.append(column)
    return found


def _exceeds(part: int, whole: int, percent: float) -> bool:
    """Exactly the limit is allowed: 10 % of 1,000 are 100."""
    return part * 100 > whole * percent
