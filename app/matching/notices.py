"""Notifies people of transitions. Every notice is an action that delivery carries out by a plan. It is requested in the
transaction that makes the transition, so both are committed together. An operator may change the channels of a plan and
the text of its templates."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from app.delivery import service as delivery
from app.delivery.contract import NewAction, NewSubmission, NotificationType, Priority
from app.delivery.service import ReadPlans
from app.foundation.clock import rfc3339
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.visibility import first_name
from app.matching.store.records import HelpTask, NamedPerson, Offer, Withdrawals
from app.matching.store.stores import Store


class NoticeKind(StrEnum):
    """Apps get the kind as `type`."""

    OFFER = "OFFER"
    OFFER_WITHDRAWN = "OFFER_WITHDRAWN"
    ON_THE_WAY = "ON_THE_WAY"
    STARTED = "STARTED"
    COMPLETED = "COMPLETED"
    SEARCHING_AGAIN = "SEARCHING_AGAIN"
    NOBODY_FOUND = "NOBODY_FOUND"
    CANCELLED = "CANCELLED"
    ASSIGNED_TO_YOU = "ASSIGNED_TO_YOU"
    RELEASED = "RELEASED"
    NOBODY_FOUND_FOR = "NOBODY_FOUND_FOR"
    NOT_STARTED = "NOT_STARTED"
    NOT_COMPLETED = "NOT_COMPLETED"
    ELDER_LEFT = "ELDER_LEFT"
    STUDENT_WITHDREW = "STUDENT_WITHDREW"
    SHORT_VISITS = "SHORT_VISITS"

    @property
    def plan(self) -> str:
        """The key of the plan that delivers the notice."""
        return f"matching.{self.value.lower()}"


NOBODY_FOUND_AGAIN = "matching.nobody_found_again"
NOBODY_FOUND_JOINED = "matching.nobody_found_joined"
NOBODY_FOUND_ON_CALL = "matching.nobody_found_on_call"
"""Plans of alarms that are joined. Apps get the types that they know."""


def _notice(
    person_id: int, kind: NoticeKind, task: HelpTask, priority: Priority = Priority.HIGH, **variables: Any
) -> NewAction:
    return NewAction(
        plan=kind.plan,
        person_id=person_id,
        elder_id=task.elder_id,
        variables=variables,
        data=_data(kind, task.id),
        task_id=task.id,
        priority=priority,
    )


def _data(kind: NoticeKind, task_id: UUID, deadline: datetime | None = None) -> dict[str, str]:
    data = {"type": kind.value, "taskId": str(task_id)}
    if deadline is not None:
        data["deadline"] = rfc3339(deadline)
    return data


def read_plan_of(store: Store, kind: NoticeKind, *person_ids: int) -> ReadPlans:
    """Of the people whom the notice is for or about."""
    return delivery.read_plan(store.conn, kind.plan, *person_ids)


def read_plan_of_elder(store: Store, kind: NoticeKind, task_id: UUID) -> ReadPlans:
    """Before the task is read."""
    elder = "u.id = (SELECT elder_id FROM tasks WHERE id = :task_id)"
    return delivery.read_plan_where(store.conn, kind.plan, elder, task_id=task_id)


def offers(
    store: Store,
    deadlines: Mapping[tuple[UUID, int], datetime],
    tasks: Mapping[UUID, HelpTask],
    rules: MatchingRules,
    read_plans: ReadPlans | None = None,
) -> None:
    """Each deadline is that of a task and a student."""
    seconds = int(rules.offer_ttl.total_seconds())
    # The same variables for all offers, so that delivery renders the template only once.
    variables = {"minutes": seconds // 60, "seconds": seconds}
    delivery.request_actions(
        store.conn,
        [
            _offer(tasks[task_id], student_id, deadline, variables)
            for (task_id, student_id), deadline in deadlines.items()
        ],
        read_plans,
    )


def _offer(task: HelpTask, student_id: int, deadline: datetime, variables: dict[str, Any]) -> NewAction:
    return NewAction(
        plan=NoticeKind.OFFER.plan,
        person_id=student_id,
        elder_id=task.elder_id,
        variables=variables,
        data=_data(NoticeKind.OFFER, task.id, deadline),
        task_id=task.id,
        priority=Priority.URGENT,
        expires_at=deadline,
    )


def offers_taken_back(store: Store, offers: Sequence[Offer]) -> None:
    """Makes the apps close the offers. They show no text, because the students have nothing to do."""
    delivery.cancel_actions(store.conn, [(offer.task_id, offer.student_id) for offer in offers], NoticeKind.OFFER)
    tasks = {task.id: task for task in store.read_tasks({offer.task_id for offer in offers})}
    withdrawn = [_notice(offer.student_id, NoticeKind.OFFER_WITHDRAWN, tasks[offer.task_id]) for offer in offers]
    delivery.request_actions(store.conn, withdrawn)


def to_elder(store: Store, task: HelpTask, kind: NoticeKind, student_id: int | None = None) -> None:
    about: dict[str, Any] = {} if student_id is None else {"student": _first_name_of(store, student_id)}
    delivery.request_actions(store.conn, [_notice(task.elder_id, kind, task, **about)])


def on_the_way(store: Store, task: HelpTask, student: NamedPerson, read_plans: ReadPlans) -> None:
    notice = _notice(task.elder_id, NoticeKind.ON_THE_WAY, task, student=first_name(student.name))
    delivery.request_actions(store.conn, [notice], read_plans)


def to_student(store: Store, task: HelpTask, kind: NoticeKind, student_id: int) -> None:
    elder = _first_name_of(store, task.elder_id)
    delivery.request_actions(store.conn, [_notice(student_id, kind, task, elder=elder)])


def _first_name_of(store: Store, person_id: int) -> str:
    return first_name(store.people([person_id])[person_id].name)


def nobody_found(store: Store, tasks: Sequence[HelpTask], owed: AbstractSet[UUID]) -> None:
    """Notifies the elder and the coordinators. The elder's plan also has a step for the coordinator on call, who needs
    the elder's name and phone. For the tasks whose alarm is owed, only the elder is notified now."""
    elders = store.people([task.elder_id for task in tasks]) if tasks else {}
    new: list[NewAction] = []
    for task in tasks:
        elder = elders[task.elder_id]
        notice = _notice(elder.id, NoticeKind.NOBODY_FOUND, task, Priority.URGENT, **_name_and_phone(elder))
        if task.id in owed:
            new.append(replace(notice, plan=NOBODY_FOUND_AGAIN))
        else:
            new += [notice, *_to_coordinators(store, task, NoticeKind.NOBODY_FOUND_FOR, elder)]
    delivery.request_actions(store.conn, new)


def joined_alarm(store: Store, elder_id: int, task_ids: Sequence[UUID]) -> None:
    """One message to each coordinator, and one to the coordinator on call, for all of these tasks of an elder. It names
    the last one."""
    elder, [last] = store.people([elder_id])[elder_id], store.read_tasks([max(task_ids)])
    alarm = _notice(
        elder_id, NoticeKind.NOBODY_FOUND_FOR, last, Priority.URGENT, count=len(task_ids), **_name_and_phone(elder)
    )
    to_staff = [replace(alarm, plan=NOBODY_FOUND_JOINED, person_id=id_) for id_ in store.coordinators(elder_id)]
    on_call = replace(alarm, plan=NOBODY_FOUND_ON_CALL, person_id=None, data={})
    delivery.request_actions(store.conn, [*to_staff, on_call])


def overdue(store: Store, task: HelpTask, *, not_started: bool) -> None:
    assert task.student_id is not None, "only a held task is overdue"
    people = store.people([task.elder_id, task.student_id])
    kind = NoticeKind.NOT_STARTED if not_started else NoticeKind.NOT_COMPLETED
    student = people[task.student_id].name
    new = _to_coordinators(store, task, kind, people[task.elder_id], student=student)
    delivery.request_actions(store.conn, new)


def details_shown(store: Store, task: HelpTask, student_id: int) -> None:
    """An entry of the audit trail, with ids only: from now on, until the task ends, the student sees the phone and the
    exact place of the elder. The answer to an accept shows them already."""
    ids = {"taskId": str(task.id), "studentId": student_id, "elderId": task.elder_id}
    body = f"The phone and the place of elder {task.elder_id} were shown to student {student_id}."
    new = NewSubmission(NotificationType.AUDIT, f"task:{task.id}", body, subject="matching.details_shown", metadata=ids)
    delivery.submit_later(store.conn, new)


def withdrew(store: Store, task: HelpTask, student_id: int, withdrawals: Withdrawals) -> None:
    people = store.people([task.elder_id, student_id])
    about = {"count": withdrawals.count, "suspended": withdrawals.suspended}
    elder, student = people[task.elder_id], people[student_id].name
    delivery.request_actions(
        store.conn, _to_coordinators(store, task, NoticeKind.STUDENT_WITHDREW, elder, student=student, **about)
    )


def short_visits(store: Store, task: HelpTask, student_id: int, count: int) -> None:
    """Whoever accepts, reads the address and completes at once collects addresses, or tasks."""
    people = store.people([task.elder_id, student_id])
    elder, student = people[task.elder_id], people[student_id].name
    delivery.request_actions(
        store.conn, _to_coordinators(store, task, NoticeKind.SHORT_VISITS, elder, student=student, count=count)
    )


def elder_left(store: Store, task: HelpTask) -> None:
    """Somebody has to look after an elder who was waiting when their municipality took them off its list."""
    elder = store.people([task.elder_id])[task.elder_id]
    delivery.request_actions(store.conn, _to_coordinators(store, task, NoticeKind.ELDER_LEFT, elder))


def _to_coordinators(
    store: Store, task: HelpTask, kind: NoticeKind, elder: NamedPerson, **variables: Any
) -> list[NewAction]:
    return [
        _notice(coordinator_id, kind, task, Priority.URGENT, **_name_and_phone(elder), **variables)
        for coordinator_id in store.coordinators(task.elder_id)
    ]


def _name_and_phone(elder: NamedPerson) -> dict[str, Any]:
    return {"elder": elder.name, "phone": elder.phone}
