"""What a coordinator sees and steers, as a value.

This is the one place that says it. Whatever lists or shows rows to coordinators takes a scope as an argument and asks
it for the condition; a policy test checks every route. A row outside the scope does not exist for the coordinator.
"""

from dataclasses import dataclass
from typing import Any

from app.users.models import Caller, Role

REACHED = """
    (CAST(:scope_institution AS bigint) IS NULL OR u.institution_id = :scope_institution OR u.id = :scope_user)
"""
"""SQL: the user `u` may be written to. Its values are those of the scope."""


@dataclass(frozen=True)
class StaffScope:
    user_id: int | None = None
    institution_id: int | None = None
    """The institution whose elders, tasks and messages are seen; None for all."""
    is_admin: bool = False

    @property
    def is_everything(self) -> bool:
        return self.institution_id is None

    def sees(self, column: str) -> str:
        """SQL: the row belongs to an institution that is seen. The number stands in the statement, because the planner
        uses a partial index only for a value that it can see."""
        return "true" if self.institution_id is None else f"{column} = {self.institution_id:d}"

    @property
    def values(self) -> dict[str, Any]:
        return {"scope_institution": self.institution_id, "scope_user": self.user_id}

    def reaches(self, user_id: int, institution_id: int | None) -> bool:
        """As `REACHED`, for a user who was read already."""
        return self.institution_id in (None, institution_id) or self.user_id == user_id


EVERYTHING = StaffScope(is_admin=True)
"""For commands of the operator."""


def scope_of(caller: Caller) -> StaffScope:
    """An admin sees everything, whatever institution they belong to. Elders and students have no scope: they see what
    concerns them."""
    assert caller.is_coordinator, "only coordinators and admins have a scope"
    is_admin = caller.role is Role.ADMIN
    return StaffScope(caller.id, None if is_admin else caller.institution_id, is_admin)
