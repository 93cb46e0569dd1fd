"""Who is told what. Every message is a plan that delivery carries out, asked for in the transaction that gives the
reason for it; which channels it takes and how it is worded is the operator's to change."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.delivery.contract import NewAction, Priority
from app.matching.rules import MatchingRules
from app.matching.store.records import Fact, Reader, Task
from app.matching.store.stores import Store
from app.matching.words import NoticeKind, first_name


def _tell(
    person_id: int, message: NoticeKind, task_id: UUID, priority: Priority = Priority.HIGH, **variables: Any
) -> NewAction:
    return NewAction(
        plan=message.plan,
        person_id=person_id,
        variables=variables,
        data=_data(message, task_id),
        task_id=task_id,
        priority=priority,
    )


def _data(message: NoticeKind, task_id: UUID, deadline: datetime | None = None) -> dict[str, str]:
    data = {"type": message.value, "taskId": str(task_id)}
    if deadline is not None:
        data["deadline"] = deadline.isoformat().replace("+00:00", "Z")
    return data


def offers(store: Store, asked: Sequence[Fact], deadlines: Mapping[UUID, datetime], rules: MatchingRules) -> None:
    seconds = int(rules.offer_ttl.total_seconds())
    # The same for all of them, so that delivery has to put it into words only once.
    variables = {"minutes": seconds // 60, "seconds": seconds}
    store.enqueue(
        [_offer(fact, deadlines[fact.task_id], variables) for fact in asked if fact.task_id in deadlines],
    )


def _offer(asked: Fact, deadline: datetime, variables: dict[str, Any]) -> NewAction:
    return NewAction(
        plan=NoticeKind.OFFER.plan,
        person_id=asked.student_id,
        variables=variables,
        data=_data(NoticeKind.OFFER, asked.task_id, deadline),
        task_id=asked.task_id,
        priority=Priority.URGENT,
        expires_at=deadline,
    )


def offer_taken_back(store: Store, task_id: UUID, student_id: int) -> None:
    """The popup closes. Words are not shown: the student has done nothing and has nothing to do."""
    store.cancel_waiting(task_id, [student_id], NoticeKind.OFFER)
    store.enqueue([_tell(student_id, NoticeKind.OFFER_WITHDRAWN, task_id)])


def to_elder(store: Store, task: Task, message: NoticeKind, student_id: int | None = None) -> None:
    about: dict[str, Any] = {} if student_id is None else {"student": _first_name_of(store, student_id)}
    store.enqueue([_tell(task.elder_id, message, task.id, **about)])


def to_student(store: Store, task: Task, message: NoticeKind, student_id: int) -> None:
    store.enqueue([_tell(student_id, message, task.id, elder=_first_name_of(store, task.elder_id))])


def _first_name_of(store: Store, person_id: int) -> str:
    return first_name(store.readers([person_id])[person_id].name)


def nobody_found(store: Store, tasks: Sequence[Task]) -> None:
    """The elder's plan has a step for whoever is on call, who has to know whom to ring."""
    elders = store.readers([task.elder_id for task in tasks]) if tasks else {}
    told: list[NewAction] = []
    for task in tasks:
        elder = elders[task.elder_id]
        told.append(_tell(elder.id, NoticeKind.NOBODY_FOUND, task.id, Priority.URGENT, **_caller(elder)))
        told += _to_coordinators(store, task, NoticeKind.NOBODY_FOUND_FOR, elder)
    store.enqueue(told)


def overdue(store: Store, task: Task, *, not_started: bool) -> None:
    assert task.student_id is not None, "only a held task is overdue"
    people = store.readers([task.elder_id, task.student_id])
    message = NoticeKind.NOT_STARTED if not_started else NoticeKind.NOT_COMPLETED
    student = people[task.student_id].name
    store.enqueue(_to_coordinators(store, task, message, people[task.elder_id], student=student))


def _to_coordinators(store: Store, task: Task, message: NoticeKind, elder: Reader, **variables: Any) -> list[NewAction]:
    return [
        _tell(coordinator_id, message, task.id, Priority.URGENT, **_caller(elder), **variables)
        for coordinator_id in store.coordinators(task.elder_id)
    ]


def _caller(elder: Reader) -> dict[str, Any]:
    return {"elder": elder.name, "phone": elder.phone}
