"""Tasks and offers as they are shown, in memory."""

from datetime import datetime
from types import SimpleNamespace
from uuid import UUID

from app.matching.contract import MyOffer, OfferView, Page, TaskView
from app.matching.errors import TaskNotFound
from app.matching.states import HELD, OPEN, OfferState, TaskStatus
from app.matching.store.memory.part import Part
from app.matching.store.memory.tables import TaskRow
from app.matching.visibility import parse_cursor, seen_by
from app.matching.words import first_name
from app.users.models import Caller, Role


class MemoryViews(Part):
    def task_view(self, caller: Caller, task_id: UUID) -> TaskView:
        row = self.rows.tasks.get(task_id)
        if row is None or not self._concerns(caller, row):
            raise TaskNotFound
        return self._view(caller, row)

    def task_views(self, caller: Caller, status: TaskStatus | None, cursor: str | None, limit: int) -> Page[TaskView]:
        before = parse_cursor(cursor)
        found = [
            row
            for row in sorted(self.rows.tasks.values(), key=lambda row: row.id, reverse=True)
            if self._concerns(caller, row)
            and (status is None or row.status is status)
            and (before is None or row.id < before)
        ]
        items = [self._view(caller, row) for row in found[:limit]]
        return Page(items, str(items[-1].id) if len(found) > limit else None)

    def open_task(self, caller: Caller) -> TaskView | None:
        for row in self.rows.tasks.values():
            mine = caller.role is Role.ELDER and row.elder_id == caller.id and row.status in OPEN
            if mine or (caller.role is Role.STUDENT and row.student_id == caller.id and row.status in HELD):
                return self._view(caller, row)
        return None

    def current_offer(self, caller: Caller) -> MyOffer | None:
        live = self.rows.live_offer_of(caller.id)
        if live is None or live.deadline is None or live.deadline <= self.now():
            return None
        task = self.rows.tasks[live.task_id]
        elder = first_name(self.rows.users[task.elder_id].name)
        return MyOffer(task.id, live.deadline, live.distance_m or 0.0, elder, task.note)

    def offer_views(self, task_id: UUID) -> list[OfferView]:
        if task_id not in self.rows.tasks:
            raise TaskNotFound
        late = datetime.max.replace(tzinfo=self.now().tzinfo)
        rows = sorted(self.rows.offers_of(task_id), key=lambda row: (row.offered_at or late, row.id))
        return [
            OfferView(
                row.student_id,
                row.rank,
                row.completed,
                row.distance_m,
                row.state,
                row.reason,
                row.offered_at,
                row.deadline,
            )
            for row in rows
        ]

    def _concerns(self, caller: Caller, row: TaskRow) -> bool:
        if caller.is_coordinator:
            return True
        if caller.role is Role.ELDER:
            return row.elder_id == caller.id
        offer = self.rows.offers.get((row.id, caller.id))
        return offer is not None and offer.state is not OfferState.SKIPPED

    def _view(self, caller: Caller, row: TaskRow) -> TaskView:
        live = self.rows.live_offer_for(row.id)
        if live is not None and (live.deadline is None or live.deadline <= self.now()):
            live = None
        elder = self.rows.users[row.elder_id]
        student = None if row.student_id is None else self.rows.users[row.student_id]
        return seen_by(
            caller,
            SimpleNamespace(
                id=row.id,
                status=row.status,
                created_at=row.created_at,
                note=row.note,
                asked=row.asked,
                remaining=max(row.listed - row.asked - row.skipped, 0),
                next_step_at=row.next_step_at,
                lat=row.spot.lat,
                lon=row.spot.lon,
                elder_id=elder.id,
                elder_name=elder.name,
                elder_phone=elder.phone,
                student_id=row.student_id,
                student_name=student and student.name,
                student_phone=student and student.phone,
                live_student_id=live and live.student_id,
                live_deadline=live and live.deadline,
            ),
        )
