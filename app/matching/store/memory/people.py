"""People of any role in memory, and what they are told."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from app.delivery.contract import NewAction
from app.matching.states import HELD, OPEN
from app.matching.store.memory.part import Part
from app.matching.store.memory.tables import NotificationRow, UserRow
from app.matching.store.records import Elder, Reader
from app.users.models import Role


class MemoryPeople(Part):
    def hold_elder(self, elder_id: int) -> Elder | None:
        row = self.rows.users.get(elder_id)
        return None if row is None else Elder(row.role, row.active, row.home)

    def set_active_user(self, user_id: int, active: bool) -> Role | None:
        row = self.rows.users.get(user_id)
        if row is None:
            return None
        self.rows.users[user_id] = replace(row, active=active)
        return row.role

    def tasks_of(self, user_id: int) -> list[UUID]:
        own = {row.id for row in self.rows.tasks.values() if row.elder_id == user_id and row.status in OPEN}
        held = {row.id for row in self.rows.tasks.values() if row.student_id == user_id and row.status in HELD}
        live = self.rows.live_offer_of(user_id)
        return sorted(own | held | ({live.task_id} if live is not None else set()))

    def readers(self, ids: Iterable[int]) -> dict[int, Reader]:
        return {user_id: _reader(self.rows.users[user_id]) for user_id in ids if user_id in self.rows.users}

    def coordinators(self, elder_id: int) -> list[int]:
        theirs = self.rows.users[elder_id].institution_id
        circles: dict[int, list[int]] = {}
        for row in sorted(self.rows.users.values(), key=lambda row: row.id):
            if row.active and row.role in (Role.COORDINATOR, Role.ADMIN):
                mine = row.institution_id == theirs is not None
                circle = 3 if row.role is Role.ADMIN else 1 if mine else 2
                circles.setdefault(circle, []).append(row.id)
        return circles[min(circles)] if circles else []

    def enqueue(self, new: Sequence[NewAction]) -> None:
        self.rows.notifications += [NotificationRow(item, self.now()) for item in new]

    def cancel_waiting(self, task_id: UUID, recipients: Sequence[int], message_type: str) -> None:
        """Nothing is ever sent from memory, so everything is still waiting."""
        for index, row in enumerate(self.rows.notifications):
            meant = row.new.task_id == task_id and row.new.person_id in recipients
            if meant and row.message == message_type:
                self.rows.notifications[index] = replace(row, cancelled=True)


def _reader(row: UserRow) -> Reader:
    return Reader(row.id, row.name, row.phone)
