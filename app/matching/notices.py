"""Notifies people of transitions. Every notice is an action that delivery carries out by a plan. It is requested in the
transaction that makes the transition, so both are committed together. An operator may change the channels of a plan and
the text of its templates."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from app.delivery import service as delivery
from app.delivery.contract import NewAction, Priority
from app.foundation.clock import rfc3339
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.visibility import first_name
from app.matching.store.records import HelpTask, NamedPerson, Offer
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

    @property
    def plan(self) -> str:
        """The key of the plan that delivers the notice."""
        return f"matching.{self.value.lower()}"


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


def offers(
    store: Store, deadlines: Mapping[tuple[UUID, int], datetime], tasks: Mapping[UUID, HelpTask], rules: MatchingRules
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


def to_student(store: Store, task: HelpTask, kind: NoticeKind, student_id: int) -> None:
    elder = _first_name_of(store, task.elder_id)
    delivery.request_actions(store.conn, [_notice(student_id, kind, task, elder=elder)])


def _first_name_of(store: Store, person_id: int) -> str:
    return first_name(store.people([person_id])[person_id].name)


def nobody_found(store: Store, tasks: Sequence[HelpTask]) -> None:
    """Notifies the elder and the coordinators. The elder's plan also has a step for the coordinator on call, who needs
    the elder's name and phone."""
    elders = store.people([task.elder_id for task in tasks]) if tasks else {}
    new: list[NewAction] = []
    for task in tasks:
        elder = elders[task.elder_id]
        new.append(_notice(elder.id, NoticeKind.NOBODY_FOUND, task, Priority.URGENT, **_name_and_phone(elder)))
        new += _to_coordinators(store, task, NoticeKind.NOBODY_FOUND_FOR, elder)
    delivery.request_actions(store.conn, new)


def overdue(store: Store, task: HelpTask, *, not_started: bool) -> None:
    assert task.student_id is not None, "only a held task is overdue"
    people = store.people([task.elder_id, task.student_id])
    kind = NoticeKind.NOT_STARTED if not_started else NoticeKind.NOT_COMPLETED
    student = people[task.student_id].name
    new = _to_coordinators(store, task, kind, people[task.elder_id], student=student)
    delivery.request_actions(store.conn, new)


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
