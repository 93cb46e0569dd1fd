"""Students in memory."""

from collections.abc import Iterable
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from app.matching.states import TaskStatus
from app.matching.store.memory.part import Part
from app.matching.store.memory.tables import StudentRow, TaskRow, distance_m
from app.matching.store.records import Candidate, Ranking
from app.users.models import LatLon


class MemoryStudents(Part):
    def rank(self, task_id: UUID, spot: LatLon, *, radius_m: float, cap: int, time_zone: str) -> Ranking:
        asked = {row.student_id for row in self.rows.offers_of(task_id)}
        found = [
            Candidate(row.id, self.completed(row, time_zone), distance_m(row.location, spot), self.busy_until(row.id))
            for row in self.rows.students.values()
            if row.available and row.location is not None and row.id not in asked
        ]
        near = [item for item in found if item.distance_m <= radius_m]
        near.sort(key=lambda item: (item.completed, item.distance_m, item.student_id))
        return Ranking(near[:cap], len(near))

    def completed(self, student: StudentRow, time_zone: str) -> int:
        return student.completed if student.month == self.month(time_zone) else 0

    def month(self, time_zone: str) -> date:
        return self.now().astimezone(ZoneInfo(time_zone)).date().replace(day=1)

    def busy_until(self, student_id: int) -> datetime | None:
        live = self.rows.live_offer_of(student_id)
        return None if live is None else live.deadline

    def lock_students(self, ids: Iterable[int], *, skip_locked: bool = False) -> dict[int, int]:
        return {id_: hash(self.rows.students[id_]) for id_ in set(ids) & self.rows.students.keys()}

    def is_active_student(self, student_id: int) -> bool:
        row = self.rows.students.get(student_id)
        return row is not None and row.active

    def take_student(self, student_id: int, task_id: UUID) -> bool:
        row = self.rows.students.get(student_id)
        if row is None or not row.active or row.open_task_id is not None:
            return False
        self.rows.change_student(student_id, open_task_id=task_id)
        return True

    def free_student(self, student_id: int) -> None:
        self.rows.change_student(student_id, open_task_id=None)

    def count_completed(self, student_id: int, time_zone: str) -> None:
        completed = self.completed(self.rows.students[student_id], time_zone) + 1
        self.rows.change_student(student_id, completed=completed, month=self.month(time_zone), open_task_id=None)

    def oldest_waiting_tasks(self, student_ids: Iterable[int], radius_m: float) -> set[UUID]:
        now = self.now()
        free = [
            student_id
            for student_id in student_ids
            if student_id in self.rows.students
            and self.rows.students[student_id].available
            and self.rows.live_offer_of(student_id) is None
        ]
        within = [[row for row in self._waiting(item, radius_m) if row.search_until > now] for item in free]
        return {min(rows, key=lambda row: (row.created_at, row.id)).id for rows in within if rows}

    def tasks_waiting_for(self, student_ids: Iterable[int], radius_m: float) -> set[UUID]:
        return {row.id for student_id in student_ids for row in self._waiting(student_id, radius_m)}

    def _waiting(self, student_id: int, radius_m: float) -> list[TaskRow]:
        student = self.rows.students.get(student_id)
        if student is None or student.location is None:
            return []
        return [
            row
            for row in self.rows.tasks.values()
            if row.waiting
            and row.status is TaskStatus.PENDING
            and distance_m(row.spot, student.location) <= radius_m
            and (row.id, student_id) not in self.rows.offers
        ]

    def set_on_duty(self, student_id: int, on_duty: bool) -> None:
        self.rows.change_student(student_id, on_duty=on_duty)

    def place_student(self, student_id: int, spot: LatLon) -> bool:
        self.rows.change_student(student_id, location=spot)
        return student_id in self.rows.students

    def has_strayed(self, student_id: int, leash_m: float) -> bool:
        live, student = self.rows.live_offer_of(student_id), self.rows.students[student_id]
        if live is None or student.location is None:
            return False
        return distance_m(self.rows.tasks[live.task_id].spot, student.location) > leash_m

    def set_active_student(self, student_id: int, active: bool) -> None:
        self.rows.change_student(student_id, active=active)
