"""The board: everything that coordinators have to look after now."""

from uuid import UUID

from app.api.access import COORDINATORS
from app.api.routing import Call, Routes
from app.api.schemas import OutcomeBody, PageJson, TaskJson
from app.api.schemas_console import BoardQuery, CandidatesJson, CandidatesQuery
from app.foundation.errors import InvalidValue
from app.matching.contract import IllegalTaskTransition, TaskNotFound
from app.users.contract import search_people

routes = Routes("Board")


@routes.add("GET", "/api/v1/board", who=COORDINATORS, answers={200: PageJson[TaskJson]}, errors=(InvalidValue,))
def show_board(call: Call, query: BoardQuery) -> PageJson[TaskJson]:
    """List open tasks, and tasks that nobody took until somebody says what became of them.

    Newest first.
    """
    page = call.services.matching.board(call.caller, cursor=query.cursor, limit=query.limit)
    return PageJson[TaskJson].model_validate(page)


@routes.add(
    "GET",
    "/tasks/{taskId}/candidates",
    who=COORDINATORS,
    answers={200: CandidatesJson},
    errors=(TaskNotFound,),
)
def list_candidates(call: Call, task_id: UUID, query: CandidatesQuery) -> CandidatesJson:
    """List active students to whom I could assign the task by hand, nearest first.

    Students of my institution, and those whom a task of its elders has named.
    """
    search = None if query.search is None else search_people(query.search)
    found = call.services.matching.assignable(call.scope, task_id, search, query.limit)
    return CandidatesJson.model_validate({"items": found})


@routes.add(
    "PUT",
    "/tasks/{taskId}/outcome",
    who=COORDINATORS,
    answers={200: TaskJson},
    errors=(TaskNotFound, IllegalTaskTransition),
)
def say_outcome(call: Call, task_id: UUID, body: OutcomeBody) -> TaskJson:
    """Say what became of a task that nobody took.

    The task leaves the board. Repeating it is harmless; another outcome or note replaces the one before.
    """
    view = call.services.matching.say_outcome(call.caller, task_id, body.outcome, body.note or None)
    return TaskJson.model_validate(view)
