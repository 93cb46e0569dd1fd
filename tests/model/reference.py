"""What ought to happen, told without looking at how it is done.

The reference knows people on a line, tasks, offers, and who was told what. What people do it takes over from the
machine that plays; what the service does by itself it judges: was this student the one whose turn it was, was it
time for this search to end?
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from app.matching.rules import MatchingRules

OPEN, HELD = {"PENDING", "ASSIGNED", "STARTED"}, {"ASSIGNED", "STARTED"}
Order = list[int] | None
"""A list as Redis may hold it; None where it may hold none, and the search is ranked anew."""


@dataclass
class Student:
    id: int
    metres: float
    active: bool = True
    on_duty: bool = True
    task: UUID | None = None
    completed: Counter[date] = field(default_factory=Counter)


@dataclass
class Task:
    id: UUID
    number: int
    elder: int
    metres: float
    search_until: datetime
    orders: list[Order]
    listed: set[int | None]
    """How many were eligible when the list was made; None among them where that cannot be told."""
    list_is_exact: bool = True
    """Redis heard of everybody who left the list."""
    status: str = "PENDING"
    holder: int | None = None
    offers: dict[int, str] = field(default_factory=dict)
    live: int | None = None
    deadline: datetime | None = None
    assigned_at: datetime | None = None
    report_at: datetime | None = None

    @property
    def asked(self) -> int:
        return len(self.offers) - self.skipped

    @property
    def skipped(self) -> int:
        return sum(state == "SKIPPED" for state in self.offers.values())

    @property
    def seeks(self) -> bool:
        return self.status == "PENDING" and self.live is None


class Reference:
    def __init__(self, rules: MatchingRules) -> None:
        self.rules = rules
        self.students: dict[int, Student] = {}
        self.inactive_elders: set[int] = set()
        self.tasks: dict[UUID, Task] = {}
        self.coordinators: list[int] = []
        self.told: Counter[tuple[int, str, UUID]] = Counter()
        self.taken_back: set[tuple[int, UUID]] = set()
        self.month = date.min
        self.keys: dict[tuple[int, str], UUID] = {}
        """The Idempotency-Keys that requests were made with."""

    # ---- who must be asked next ----

    def distance(self, student: Student, task: Task) -> float:
        return abs(student.metres - task.metres)

    def obstacle(self, student: Student, task: Task) -> str | None:
        if not student.active:
            return "INACTIVE"
        if not student.on_duty:
            return "OFF_DUTY"
        if student.task is not None:
            return "HAS_A_TASK"
        return "TOO_FAR" if self.distance(student, task) > self.rules.radius_m else None

    def asked_by(self, student_id: int) -> Task | None:
        return next((task for task in self.tasks.values() if task.live == student_id), None)

    def ranking(self, task: Task) -> list[int]:
        """Those who may still be asked: fewest tasks this month, then nearest, then the lower id."""
        eligible = [
            student
            for student in self.students.values()
            if self.obstacle(student, task) is None and student.id not in task.offers
        ]
        eligible.sort(key=lambda one: (one.completed[self.month], round(self.distance(one, task), 3), one.id))
        return [student.id for student in eligible]

    def free(self, ids: Iterable[int]) -> Iterator[int]:
        return (student_id for student_id in ids if self.asked_by(student_id) is None)

    def whose_turn(self, task: Task, order: Order) -> tuple[int | None, bool]:
        """Who is next by a list, and whether the list had to be made anew for it."""
        ranking = self.ranking(task)
        listed = [student_id for student_id in order or [] if student_id in ranking]
        first = next(self.free(listed), None)
        return (first, False) if first is not None else (next(self.free(ranking), None), True)

    # ---- what the service does by itself ----

    def ask(self, task: Task, student_id: int, deadline: datetime, *, lists_are_seen: bool, is_told: bool) -> None:
        orders = task.orders if lists_are_seen else [None]
        turns = [(order, *self.whose_turn(task, order)) for order in orders]
        right = [(order, anew) for order, turn, anew in turns if turn == student_id]
        assert right, f"{student_id} was asked out of turn: {turns}, {self.ranking(task)}"
        fresh = self.ranking(task)
        if len(turns) == 1 and not right[0][1]:
            for passed in (right[0][0] or [])[: (right[0][0] or []).index(student_id)]:
                silently = passed not in task.offers and passed not in fresh
                assert not silently, f"{passed} was passed by without a word"
        listed: set[int | None] = set()
        for _, anew in right:
            listed |= {len(task.offers) + len(fresh)} if anew else task.listed
        task.listed = listed
        if is_told:
            task.orders = [fresh[: self.rules.cap] if anew else order for order, anew in right]
            task.list_is_exact |= all(anew for _, anew in right)
        else:
            task.list_is_exact = False
        task.offers[student_id] = "PENDING"
        task.live, task.deadline = student_id, deadline
        self.told[student_id, "OFFER", task.id] += 1

    def may_end(self, task: Task, now: datetime) -> bool:
        return task.seeks and (now >= task.search_until or not self.ranking(task))

    def give_up(self, task: Task) -> None:
        task.status = "TIMED_OUT"
        self.told[task.elder, "NOBODY_FOUND", task.id] += 1
        self._tell_coordinators(task, "NOBODY_FOUND_FOR")

    def report(self, task: Task) -> str:
        assert task.assigned_at is not None and task.report_at is not None
        complete_by = task.assigned_at + self.rules.complete_limit
        not_started = task.status == "ASSIGNED" and task.report_at < complete_by
        task.report_at = complete_by if not_started else None
        message = "NOT_STARTED" if not_started else "NOT_COMPLETED"
        self._tell_coordinators(task, message)
        return message

    def _tell_coordinators(self, task: Task, message: str) -> None:
        for coordinator in self.coordinators:
            self.told[coordinator, message, task.id] += 1

    # ---- what people do ----

    def close(self, task: Task, state: str) -> None:
        assert task.live is not None
        task.offers[task.live] = state
        if state == "WITHDRAWN":
            self.told[task.live, "OFFER_WITHDRAWN", task.id] += 1
            self.taken_back.add((task.live, task.id))
        task.live = task.deadline = None

    def assign(self, task: Task, student_id: int, now: datetime) -> None:
        task.offers[student_id] = "ACCEPTED"
        task.live = task.deadline = None
        task.status, task.holder, task.assigned_at = "ASSIGNED", student_id, now
        task.report_at = now + self.rules.start_limit
        self.students[student_id].task = task.id
        self.told[task.elder, "ON_THE_WAY", task.id] += 1

    def start(self, task: Task) -> None:
        assert task.assigned_at is not None
        task.status = "STARTED"
        if task.report_at is not None:
            task.report_at = task.assigned_at + self.rules.complete_limit
        self.told[task.elder, "STARTED", task.id] += 1

    def complete(self, task: Task) -> None:
        assert task.holder is not None
        task.status, task.report_at = "COMPLETED", None
        self.students[task.holder].task = None
        self.students[task.holder].completed[self.month] += 1
        self.told[task.elder, "COMPLETED", task.id] += 1

    def give_back(self, task: Task, now: datetime) -> None:
        assert task.holder is not None
        task.offers[task.holder] = "RELEASED"
        self.students[task.holder].task = None
        task.status, task.holder, task.report_at = "PENDING", None, None
        task.search_until = now + self.rules.search_limit
        self.told[task.elder, "SEARCHING_AGAIN", task.id] += 1

    def cancel(self, task: Task, *, tell_elder: bool) -> None:
        if task.live is not None:
            self.close(task, "WITHDRAWN")
        if task.holder is not None:
            self.students[task.holder].task = None
            self.told[task.holder, "CANCELLED", task.id] += 1
        if tell_elder:
            self.told[task.elder, "CANCELLED", task.id] += 1
        task.status, task.report_at = "CANCELLED", None

    def task_of_key(self, elder_id: int, key: str | None) -> Task | None:
        made = None if key is None else self.keys.get((elder_id, key))
        return None if made is None else self.tasks[made]

    def open_task_of(self, elder_id: int) -> Task | None:
        return next((task for task in self.tasks.values() if task.elder == elder_id and task.status in OPEN), None)
