"""The follow-up work after a commit. Deeds and the cascade return it, and the runner carries it out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from app.redis_store.contract import ListChange, TaskKeys


@dataclass(frozen=True)
class Figures:
    """Values for the metrics."""

    late_s: tuple[float, ...] = ()
    """For each expired offer, the time from its deadline until it was closed."""
    offered: int = 0
    ended: int = 0
    """The number of searches that ended without a student."""


@dataclass(frozen=True)
class FollowUp:
    """Everything in it is a hint. If it is lost, the reconciler finds the committed rows that it is about."""

    keys: Mapping[UUID, TaskKeys] = field(default_factory=dict[UUID, TaskKeys])
    """The keys that Redis should hold for each task now."""
    again: frozenset[UUID] = frozenset()
    """Tasks to be settled again, because another transaction took the student they had chosen, or because a deed has
    left them without an offer."""
    began_to_wait: frozenset[UUID] = frozenset()
    """Tasks that began to wait in this transaction. The follow-up of a student who was freed while it ran did not see
    them waiting."""
    freed: frozenset[int] = frozenset()
    """Students who can be asked again. A task may be waiting for one of them."""
    unavailable: frozenset[int] = frozenset()
    """Students who were being asked and cannot be asked now. A task that waits for one of them has to stop waiting."""
    figures: Figures = Figures()


def combined(*parts: FollowUp) -> FollowUp:
    """The union of all parts. If two parts have keys for the same task, those of the later part win."""
    keys: dict[UUID, TaskKeys] = {}
    for part in parts:
        keys |= part.keys
    return FollowUp(
        keys,
        frozenset[UUID]().union(*(part.again for part in parts)),
        frozenset[UUID]().union(*(part.began_to_wait for part in parts)),
        frozenset[int]().union(*(part.freed for part in parts)),
        frozenset[int]().union(*(part.unavailable for part in parts)),
        Figures(
            tuple(late_s for part in parts for late_s in part.figures.late_s),
            sum(part.figures.offered for part in parts),
            sum(part.figures.ended for part in parts),
        ),
    )


def no_offer_keys(
    task_id: UUID, version: datetime | None = None, next_step_at: datetime | None = None
) -> dict[UUID, TaskKeys]:
    """The keys of a task without an offer: Redis drops its list and its pending key."""
    return {task_id: TaskKeys(task_id, next_step_at=next_step_at, list_change=ListChange.DROP, version=version)}
