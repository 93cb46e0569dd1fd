"""Who is told what. Every message is a row in the transaction that gives the reason for it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from app.delivery.contract import NewNotification
from app.delivery.models import Priority
from app.delivery.service import cancel_waiting, enqueue
from app.matching.offers import Fact
from app.matching.rules import MatchingRules
from app.matching.tasks import Task
from app.matching.words import UNKNOWN_PHONE, Message, first_name, say, time_left


@dataclass(frozen=True)
class Reader:
    id: int
    name: str
    phone: str | None
    locale: str


def readers(conn: Connection, ids: Iterable[int]) -> dict[int, Reader]:
    rows = conn.execute(text("SELECT id, name, phone, locale FROM users WHERE id = ANY(:ids)"), {"ids": list(ids)})
    return {row.id: Reader(row.id, row.name, row.phone, row.locale) for row in rows}


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


def offers(conn: Connection, asked: Sequence[Fact], deadlines: Mapping[UUID, datetime], rules: MatchingRules) -> None:
    enqueue(conn, [_offer(fact, deadlines[fact.task_id], rules) for fact in asked if fact.task_id in deadlines])


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


def offer_taken_back(conn: Connection, task_id: UUID, student_id: int) -> None:
    """The popup closes. Words are not shown: the student has done nothing and has nothing to do."""
    cancel_waiting(conn, task_id, [student_id], Message.OFFER)
    student = readers(conn, [student_id])[student_id]
    enqueue(conn, [_to(student, Message.OFFER_WITHDRAWN, task_id)])


def to_elder(conn: Connection, task: Task, message: Message, student_id: int | None = None) -> None:
    people = readers(conn, [task.elder_id] if student_id is None else [task.elder_id, student_id])
    student = "" if student_id is None else first_name(people[student_id].name)
    enqueue(conn, [_to(people[task.elder_id], message, task.id, student=student)])


def to_student(conn: Connection, task: Task, message: Message, student_id: int) -> None:
    people = readers(conn, [task.elder_id, student_id])
    elder = first_name(people[task.elder_id].name)
    enqueue(conn, [_to(people[student_id], message, task.id, elder=elder)])


def nobody_found(conn: Connection, tasks: Sequence[Task]) -> None:
    elders = readers(conn, [task.elder_id for task in tasks]) if tasks else {}
    for task in tasks:
        elder = elders[task.elder_id]
        enqueue(conn, [_to(elder, Message.NOBODY_FOUND, task.id, Priority.URGENT)])
        _to_coordinators(conn, task, Message.NOBODY_FOUND_FOR, elder)


def overdue(conn: Connection, task: Task, *, not_started: bool) -> None:
    assert task.student_id is not None, "only a held task is overdue"
    people = readers(conn, [task.elder_id, task.student_id])
    message = Message.NOT_STARTED if not_started else Message.NOT_COMPLETED
    _to_coordinators(conn, task, message, people[task.elder_id], student=people[task.student_id].name)


# The elder's own institution first. Where it has nobody, or the elder belongs to none, all coordinators are told,
# and where there are none at all, the admins: a request that failed must not end unseen.
COORDINATORS = text("""
WITH staff AS (
    SELECT id, name, phone, locale,
           CASE WHEN role = 'ADMIN' THEN 3
                WHEN institution_id = (SELECT institution_id FROM users WHERE id = :elder_id) THEN 1
                ELSE 2 END AS circle
    FROM users WHERE role IN ('COORDINATOR', 'ADMIN') AND active
)
SELECT id, name, phone, locale FROM staff WHERE circle = (SELECT min(circle) FROM staff) ORDER BY id
""")


def _to_coordinators(conn: Connection, task: Task, message: Message, elder: Reader, **values: str) -> None:
    staff = [
        Reader(row.id, row.name, row.phone, row.locale)
        for row in conn.execute(COORDINATORS, {"elder_id": task.elder_id})
    ]
    enqueue(
        conn,
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
            for reader in staff
        ],
    )
