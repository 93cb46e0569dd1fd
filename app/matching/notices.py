"""Who is told what. Every message is a row in the transaction that gives the reason for it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from app.delivery.contract import NewNotification
from app.delivery.models import Priority
from app.matching.rules import MatchingRules
from app.matching.store.port import Store
from app.matching.store.records import Fact, Reader, Task
from app.matching.words import UNKNOWN_PHONE, Message, first_name, say, time_left


def _data(message: Message, task_id: UUID, deadline: datetime | None = None) -> dict[str, str]:
    data = {"type": message.value, "taskId": str(task_id)}
    if deadline is not None:
        data["deadline"] = deadline.isoformat().replace("+00:00", "Z")
    return data


def _to(
    reader: Reader, message: Message, task_id: UUID, priority: Priority = Priority.HIGH, **values: str
) -> NewNotification:
    words = say(message, reader.locale, **values)
    return NewNotification(
        recipient_user_id=reader.id,
        subject=words.subject,
        body=words.body,
        data=_data(message, task_id),
        task_id=task_id,
        priority=priority,
    )


def offers(store: Store, asked: Sequence[Fact], deadlines: Mapping[UUID, datetime], rules: MatchingRules) -> None:
    store.enqueue([_offer(fact, deadlines[fact.task_id], rules) for fact in asked if fact.task_id in deadlines])


def _offer(asked: Fact, deadline: datetime, rules: MatchingRules) -> NewNotification:
    words = say(Message.OFFER, asked.locale, time_left=time_left(rules.offer_ttl, asked.locale))
    return NewNotification(
        recipient_user_id=asked.student_id,
        subject=words.subject,
        body=words.body,
        data=_data(Message.OFFER, asked.task_id, deadline),
        task_id=asked.task_id,
        priority=Priority.URGENT,
        expires_at=deadline,
    )


def offer_taken_back(store: Store, task_id: UUID, student_id: int) -> None:
    """The popup closes. Words are not shown: the student has done nothing and has nothing to do."""
    store.cancel_waiting(task_id, [student_id], Message.OFFER)
    student = store.readers([student_id])[student_id]
    store.enqueue([_to(student, Message.OFFER_WITHDRAWN, task_id)])


def to_elder(store: Store, task: Task, message: Message, student_id: int | None = None) -> None:
    people = store.readers([task.elder_id] if student_id is None else [task.elder_id, student_id])
    student = "" if student_id is None else first_name(people[student_id].name)
    store.enqueue([_to(people[task.elder_id], message, task.id, student=student)])


def to_student(store: Store, task: Task, message: Message, student_id: int) -> None:
    people = store.readers([task.elder_id, student_id])
    elder = first_name(people[task.elder_id].name)
    store.enqueue([_to(people[student_id], message, task.id, elder=elder)])


def nobody_found(store: Store, tasks: Sequence[Task]) -> None:
    elders = store.readers([task.elder_id for task in tasks]) if tasks else {}
    for task in tasks:
        elder = elders[task.elder_id]
        store.enqueue([_to(elder, Message.NOBODY_FOUND, task.id, Priority.URGENT)])
        _to_coordinators(store, task, Message.NOBODY_FOUND_FOR, elder)


def overdue(store: Store, task: Task, *, not_started: bool) -> None:
    assert task.student_id is not None, "only a held task is overdue"
    people = store.readers([task.elder_id, task.student_id])
    message = Message.NOT_STARTED if not_started else Message.NOT_COMPLETED
    _to_coordinators(store, task, message, people[task.elder_id], student=people[task.student_id].name)


def _to_coordinators(store: Store, task: Task, message: Message, elder: Reader, **values: str) -> None:
    store.enqueue(
        [
            _to(
                reader,
                message,
                task.id,
                Priority.URGENT,
                elder=elder.name,
                phone=elder.phone or UNKNOWN_PHONE[reader.locale],
                **values,
            )
            for reader in store.coordinators(task.elder_id)
        ],
    )
