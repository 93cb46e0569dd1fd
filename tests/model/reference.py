"""The specification of matching, written without a look at its implementation.

The reference holds people on a line, tasks, offers and notifications. It copies the deeds of people from the state
machine, and checks what the service does by itself: that the right student was asked, and that a search ended in time.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from app.matching.rules.matching_rules import MatchingRules

OPEN, HELD = {"PENDING", "ASSIGNED", "STARTED"}, {"ASSIGNED", "STARTED"}
CandidateList = list[int] | None
"""A candidate list that Redis may hold. None if it may hold none, so that the task is ranked is_reranked."""


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
    possible_lists: list[CandidateList]
    listed: set[int | None]
    """Possible numbers of students who were eligible when the list was made; with None, any number."""
    list_is_exact: bool = True
    """True if every removal from the list has reached Redis."""
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
    def needs_offer(self) -> bool:
        return self.status == "PENDING" and self.live is None


class Reference:
    def __init__(self, rules: MatchingRules) -> None:
        self.rules = rules
        self.students: dict[int, Student] = {}
        self.inactive_elders: set[int] = set()
        self.tasks: dict[UUID, Task] = {}
        self.coordinators: list[int] = []
        self.notified: Counter[tuple[int, str, UUID]] = Counter()
        self.withdrawn_offers: set[tuple[int, UUID]] = set()
        self.month = date.min
        self.keys: dict[tuple[int, str], UUID] = {}
        """Tasks by elder and Idempotency-Key."""

    # ---- the next student ----

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
        """Students who may still be asked: fewest completed tasks this month first, then nearest, then lowest id."""
        eligible = [
            student
            for student in self.students.values()
            if self.obstacle(student, task) is None and student.id not in task.offers
        ]
        eligible.sort(key=lambda one: (one.completed[self.month], round(self.distance(one, task), 3), one.id))
        return [student.id for student in eligible]

    def free(self, ids: Iterable[int]) -> Iterator[int]:
        return (student_id for student_id in ids if self.asked_by(student_id) is None)

    def next_student(self, task: Task, listing: CandidateList) -> tuple[int | None, bool]:
        """The next student by a list, and whether a new ranking was needed to find one."""
        ranking = self.ranking(task)
        listed = [student_id for student_id in listing or [] if student_id in ranking]
        first = next(self.free(listed), None)
        return (first, False) if first is not None else (next(self.free(ranking), None), True)

    # ---- what the service does by itself ----

    def ask(self, task: Task, student_id: int, deadline: datetime, *, lists_are_seen: bool, hints_sent: bool) -> None:
        possible_lists = task.possible_lists if lists_are_seen else [None]
        turns = [(listing, *self.next_student(task, listing)) for listing in possible_lists]
        right = [(listing, is_reranked) for listing, turn, is_reranked in turns if turn == student_id]
        assert right, f"{student_id} was asked out of turn: {turns}, ranking {self.ranking(task)}"
        fresh = self.ranking(task)
        if len(turns) == 1 and not right[0][1]:
            for passed in (right[0][0] or [])[: (right[0][0] or []).index(student_id)]:
                silently = passed not in task.offers and passed not in fresh
                assert not silently, f"{passed} was passed over without a SKIPPED offer"
        listed: set[int | None] = set()
        for _, is_reranked in right:
            listed |= {len(task.offers) + len(fresh)} if is_reranked else task.listed
        task.listed = listed
        if hints_sent:
            task.possible_lists = [
                fresh[: self.rules.cap] if is_reranked else listing for listing, is_reranked in right
            ]
            task.list_is_exact |= all(is_reranked for _, is_reranked in right)
        else:
            task.list_is_exact = False
        task.offers[student_id] = "PENDING"
        task.live, task.deadline = student_id, deadline
        self.notified[student_id, "OFFER", task.id] += 1

    def may_end(self, task: Task, now: datetime) -> bool:
        return task.needs_offer and (now >= task.search_until or not self.ranking(task))

    def give_up(self, task: Task) -> None:
        task.status = "TIMED_OUT"
        self.notified[task.elder, "NOBODY_FOUND", task.id] += 1
        self._notify_coordinators(task, "NOBODY_FOUND_FOR")

    def report(self, task: Task) -> str:
        assert task.assigned_at is not None and task.report_at is not None
        complete_by = task.assigned_at + self.rules.complete_limit
        not_started = task.status == "ASSIGNED" and task.report_at < complete_by
        task.report_at = complete_by if not_started else None
        kind = "NOT_STARTED" if not_started else "NOT_COMPLETED"
        self._notify_coordinators(task, kind)
        return kind

    def _notify_coordinators(self, task: Task, kind: str) -> None:
        for coordinator in self.coordinators:
            self.notified[coordinator, kind, task.id] += 1

    # ---- what people do ----

    def close(self, task: Task, state: str) -> None:
        assert task.live is not None
        task.offers[task.live] = state
        if state == "WITHDRAWN":
            # Somebody who was deactivated gets no more messages.
            self.notified[task.live, "OFFER_WITHDRAWN", task.id] += self.students[task.live].active
            self.withdrawn_offers.add((task.live, task.id))
        task.live = task.deadline = None

    def assign(self, task: Task, student_id: int, now: datetime) -> None:
        task.offers[student_id] = "ACCEPTED"
        task.live = task.deadline = None
        task.status, task.holder, task.assigned_at = "ASSIGNED", student_id, now
        task.report_at = now + self.rules.start_limit
        self.students[student_id].task = task.id
        self.notified[task.elder, "ON_THE_WAY", task.id] += 1

    def start(self, task: Task) -> None:
        assert task.assigned_at is not None
        task.status = "STARTED"
        if task.report_at is not None:
            task.report_at = task.assigned_at + self.rules.complete_limit
        self.notified[task.elder, "STARTED", task.id] += 1

    def complete(self, task: Task) -> None:
        assert task.holder is not None
        task.status, task.report_at = "COMPLETED", None
        self.students[task.holder].task = None
        self.students[task.holder].completed[self.month] += 1
        self.notified[task.elder, "COMPLETED", task.id] += 1

    def give_back(self, task: Task, now: datetime) -> None:
        assert task.holder is not None
        task.offers[task.holder] = "RELEASED"
        self.students[task.holder].task = None
        task.status, task.holder, task.report_at = "PENDING", None, None
        task.search_until = now + self.rules.search_limit
        self.notified[task.elder, "SEARCHING_AGAIN", task.id] += 1

    def cancel(self, task: Task, *, notify_elder: bool) -> None:
        if task.live is not None:
            self.close(task, "WITHDRAWN")
        if task.holder is not None:
            self.students[task.holder].task = None
            self.notified[task.holder, "CANCELLED", task.id] += 1
        if notify_elder:
            self.notified[task.elder, "CANCELLED", task.id] += 1
        task.status, task.report_at = "CANCELLED", None

    def task_of_key(self, elder_id: int, key: str | None) -> Task | None:
        made = None if key is None else self.keys.get((elder_id, key))
        return None if made is None else self.tasks[made]

    def open_task_of(self, elder_id: int) -> Task | None:
        return next((task for task in self.tasks.values() if task.elder == elder_id and task.status in OPEN), None)
