"""Decides which changes of a list are held back, because a list that was cut short or emptied looks like a list from
which everybody has left."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Held(StrEnum):
    """Why changes are held back."""

    TOO_SHORT = "too_short"
    TOO_MANY_REMOVED = "too_many_removed"
    TOO_MANY_REMOVED_THIS_WEEK = "too_many_removed_this_week"
    TOO_MANY_MODIFIED = "too_many_modified"
    TOO_MANY_BLANKED = "too_many_blanked"


@dataclass(frozen=True)
class GuardLimits:
    removed_percent: float
    floor: int
    """So many may always leave or change, whatever their share is."""
    least_rows: int
    """Of a list that is shorter, nobody is removed."""
    removed_percent_of_week: float
    modified_percent: float
    blanked_percent: float
    """Of the rows in which a column had a value."""


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
    removed_this_week: int
    """By earlier runs of the last seven days."""
    before_this_week: int
    """Rows at the beginning of those seven days."""
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
    total, at_first = changes.removed_this_week + changes.removed, changes.before_this_week
    if total > limits.floor and _exceeds(total, at_first, limits.removed_percent_of_week):
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
    return None


def blanked_columns(changes: ListChanges, limits: GuardLimits) -> Collection[str]:
    return [
        column
        for column, blanked in changes.blanked.items()
        if blanked > limits.floor and _exceeds(blanked, changes.filled.get(column, 0), limits.blanked_percent)
    ]


def _exceeds(part: int, whole: int, percent: float) -> bool:
    """Exactly the limit is allowed: 10 % of 1,000 are 100."""
    return part * 100 > whole * percent
