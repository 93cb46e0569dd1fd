"""Tasks: the deeds of elders, students and coordinators."""

from uuid import UUID

from app.api.access import COORDINATORS, ELDER_AND_COORDINATORS, SIGNED_IN, STUDENT
from app.api.idempotency import key_header, read_key
from app.api.routing import Call, Reply, Routes
from app.api.schemas import AssignBody, NewTaskBody, OffersJson, PageJson, TaskJson, TasksQuery, lat_lon
from app.foundation.errors import AppError, Forbidden, IdempotencyKeyReused, InvalidValue, TooManyRequests
from app.matching.contract import (
    IllegalTaskTransition,
    NewTask,
    NotAssigned,
    OfferAccepted,
    OfferExpired,
    OfferRejected,
    OfferReleased,
    OfferWithdrawn,
    Overtaken,
    StudentUnavailable,
    TaskNotFound,
)
from app.users.models import Role

routes = Routes("Tasks")

IDEMPOTENCY_KEY = key_header(
    "A request repeated with the same key for the same elder returns the same task. Keys do not expire."
)

DEED_ERRORS: tuple[type[AppError], ...] = (
    TaskNotFound,
    IllegalTaskTransition,
    NotAssigned,
    OfferAccepted,
    OfferExpired,
    OfferRejected,
    OfferReleased,
    OfferWithdrawn,
    Overtaken,
    StudentUnavailable,
)


class NotYourElder(Forbidden):
    """An elder calls for themselves only."""

    code = "not_your_elder"


@routes.add(
    "POST",
    "/tasks",
    who=ELDER_AND_COORDINATORS,
    answers={201: TaskJson, 200: TaskJson},
    headers=(IDEMPOTENCY_KEY,),
    errors=(NotYourElder, InvalidValue, IdempotencyKeyReused, Overtaken, TooManyRequests),
)
def create_task(call: Call, body: NewTaskBody) -> Reply:
    """Call for help.

    An elder has one open task at a time: pressing again answers 200 with the task that is open already, unchanged.
    """
    new = NewTask(elder_id=_elder(call, body), note=body.note or None, location=lat_lon(body.location))
    pressed = call.services.matching.press(call.caller, new, read_key(call))
    location = {"Location": f"/tasks/{pressed.task.id}"}
    return Reply(TaskJson.model_validate(pressed.task), 201 if pressed.created else 200, location)


def _elder(call: Call, body: NewTaskBody) -> int:
    if call.caller.role is Role.ELDER:
        if body.elder_id not in (None, call.caller.id):
            raise NotYourElder("An elder calls for themselves only.")
        return call.caller.id
    if body.elder_id is None:
        raise InvalidValue("elderId", "is required of coordinators: it tells for whom they call")
    return body.elder_id


@routes.add("GET", "/tasks", who=SIGNED_IN, answers={200: PageJson[TaskJson]}, errors=(InvalidValue,))
def list_tasks(call: Call, query: TasksQuery) -> PageJson[TaskJson]:
    """List tasks, newest first.

    Elders and students see the tasks that concern them, coordinators see all.
    """
    page = call.services.matching.tasks(call.caller, status=query.status, cursor=query.cursor, limit=query.limit)
    return PageJson[TaskJson].model_validate(page)


@routes.add("GET", "/tasks/{taskId}", who=SIGNED_IN, answers={200: TaskJson}, errors=(TaskNotFound,))
def get_task(call: Call, task_id: UUID) -> TaskJson:
    """Show one task, with the fields that the caller may see."""
    return TaskJson.model_validate(call.services.matching.task(call.caller, task_id))


@routes.add("GET", "/tasks/{taskId}/offers", who=COORDINATORS, answers={200: OffersJson}, errors=(TaskNotFound,))
def list_offers(call: Call, task_id: UUID) -> OffersJson:
    """Show who was asked, in what order and why.

    Ordered by the time of the offer; students who were skipped come last.
    """
    return OffersJson.model_validate({"items": call.services.matching.offers(call.caller, task_id)})


@routes.add("PUT", "/tasks/{taskId}/accept", who=STUDENT, answers={200: TaskJson}, errors=DEED_ERRORS)
def accept(call: Call, task_id: UUID) -> TaskJson:
    """Accept the task that is offered to you. Repeating it is harmless."""
    return TaskJson.model_validate(call.services.matching.accept(call.caller, task_id))


@routes.add("PUT", "/tasks/{taskId}/reject", who=STUDENT, answers={200: TaskJson}, errors=DEED_ERRORS)
def reject(call: Call, task_id: UUID) -> TaskJson:
    """Reject the task that is offered to you. Repeating it is harmless."""
    return TaskJson.model_validate(call.services.matching.reject(call.caller, task_id))


@routes.add("PUT", "/tasks/{taskId}/start", who=STUDENT, answers={200: TaskJson}, errors=DEED_ERRORS)
def start(call: Call, task_id: UUID) -> TaskJson:
    """Report that you are with the elder."""
    return TaskJson.model_validate(call.services.matching.start(call.caller, task_id))


@routes.add("PUT", "/tasks/{taskId}/complete", who=COORDINATORS | STUDENT, answers={200: TaskJson}, errors=DEED_ERRORS)
def complete(call: Call, task_id: UUID) -> TaskJson:
    """Report that the elder was helped."""
    return TaskJson.model_validate(call.services.matching.complete(call.caller, task_id))


@routes.add("PUT", "/tasks/{taskId}/withdraw", who=STUDENT, answers={200: TaskJson}, errors=DEED_ERRORS)
def withdraw(call: Call, task_id: UUID) -> TaskJson:
    """Give back a task that you have accepted; the search continues without you."""
    return TaskJson.model_validate(call.services.matching.withdraw(call.caller, task_id))


@routes.add("PUT", "/tasks/{taskId}/cancel", who=ELDER_AND_COORDINATORS, answers={200: TaskJson}, errors=DEED_ERRORS)
def cancel(call: Call, task_id: UUID) -> TaskJson:
    """End the task; help is not needed any more."""
    return TaskJson.model_validate(call.services.matching.cancel(call.caller, task_id))


@routes.add(
    "PUT",
    "/tasks/{taskId}/assign",
    who=COORDINATORS,
    answers={200: TaskJson},
    errors=(*DEED_ERRORS, InvalidValue),
)
def assign(call: Call, task_id: UUID, body: AssignBody) -> TaskJson:
    """Give the task to a student you have talked to."""
    return TaskJson.model_validate(call.services.matching.assign(call.caller, task_id, body.student_id))


@routes.add("PUT", "/tasks/{taskId}/next", who=COORDINATORS, answers={200: TaskJson}, errors=DEED_ERRORS)
def move_on(call: Call, task_id: UUID) -> TaskJson:
    """Stop waiting for the student who is being asked, and ask the next one."""
    return TaskJson.model_validate(call.services.matching.move_on(call.caller, task_id))


@routes.add("PUT", "/tasks/{taskId}/release", who=COORDINATORS, answers={200: TaskJson}, errors=DEED_ERRORS)
def release(call: Call, task_id: UUID) -> TaskJson:
    """Take the task from its student; the search continues without this student."""
    return TaskJson.model_validate(call.services.matching.release(call.caller, task_id))
