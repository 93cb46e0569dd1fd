"""What a run has done to the people of one kind, as a person reads it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from app.matching.contract import LeftBehind
from app.roster.people.which_side_wins import Follows, WhatFollows
from app.users.models import Role


@dataclass
class PeopleReport:
    created: int = 0
    bound: int = 0
    """Users who had been entered by hand."""
    reactivated: int = 0
    updated: int = 0
    deactivated: int = 0
    tasks_closed: int = 0
    """Of elders who left."""
    searched_again: int = 0
    """Tasks of students who left."""
    offers_withdrawn: int = 0
    without_place: int = 0
    """Elders whose row has no place and who have no home, so they have to name a place with each request."""
    kept: int = 0
    """Changes of the list that gave way to what the person or a coordinator had entered."""
    left: int = 0
    """People whom others had locked all the time. The next run finds them."""
    longest_ms: float = 0.0
    """The longest statement, and so the longest that anybody waited for it."""

    def add(self, done: Iterable[WhatFollows], *, has_places: bool) -> None:
        for one in done:
            match one.follows:
                case Follows.CREATED:
                    self.created += 1
                case Follows.BOUND:
                    self.bound += 1
                case Follows.RETURNED:
                    self.reactivated += 1
                case Follows.UPDATED:
                    self.updated += one.is_changed
                case Follows.LEFT:
                    self.deactivated += 1
                case Follows.GONE:
                    continue
            self.kept += one.kept
            self.without_place += has_places and one.follows is not Follows.LEFT and one.values.home is None

    def add_ended(self, ended: LeftBehind, role: Role) -> None:
        self.offers_withdrawn += ended.live_offers
        if role is Role.ELDER:
            self.tasks_closed += ended.open_tasks
        else:
            self.searched_again += ended.open_tasks

    def to_dict(self) -> dict[str, float]:
        return asdict(self) | {"longest_ms": round(self.longest_ms, 1)}
