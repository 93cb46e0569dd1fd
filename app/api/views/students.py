"""Students and elders, as coordinators look for them."""

from app.api.access import COORDINATORS
from app.api.routing import Call, Routes
from app.api.schemas import PageJson
from app.api.schemas_console import (
    ListedElderJson,
    ListedStudentJson,
    MapQuery,
    PeopleQuery,
    StudentMapJson,
    StudentsQuery,
)
from app.foundation.errors import InvalidValue
from app.matching.contract import MapBox, PeoplePage
from app.users.contract import search_people

routes = Routes("Students and elders")

MOST_ON_THE_MAP = 2_000


@routes.add(
    "GET", "/api/v1/students", who=COORDINATORS, answers={200: PageJson[ListedStudentJson]}, errors=(InvalidValue,)
)
def list_students(call: Call, query: StudentsQuery) -> PageJson[ListedStudentJson]:
    """List students, newest first.

    A coordinator with an institution sees its students, and those who have a task of its elders or are asked for one.
    """
    page = call.services.matching.student_list(call.scope, _wanted(query), query.on_duty, query.suspended)
    return PageJson[ListedStudentJson].model_validate(page)


@routes.add("GET", "/api/v1/elders", who=COORDINATORS, answers={200: PageJson[ListedElderJson]}, errors=(InvalidValue,))
def list_elders(call: Call, query: PeopleQuery) -> PageJson[ListedElderJson]:
    """List active elders, newest first, to press for one who calls."""
    page = call.services.matching.elder_list(call.scope, _wanted(query))
    return PageJson[ListedElderJson].model_validate(page)


def _wanted(query: PeopleQuery) -> PeoplePage:
    search = None if query.search is None else search_people(query.search)
    return PeoplePage(search, query.cursor, query.limit)


@routes.add("GET", "/api/v1/map", who=COORDINATORS, answers={200: StudentMapJson}, errors=(InvalidValue,))
def show_map(call: Call, query: MapQuery) -> StudentMapJson:
    """Show the active students in a part of the map, at most 2,000, those on duty first.

    Whom I see is as in the list of students. The places of open tasks are on the board.
    """
    if query.south > query.north:
        raise InvalidValue("south", "must not be north of `north`")
    if query.west > query.east:
        raise InvalidValue("west", "must not be east of `east`; a map over the 180th meridian is two requests")
    box = MapBox(query.south, query.west, query.north, query.east)
    return StudentMapJson.model_validate(call.services.matching.student_map(call.scope, box, MOST_ON_THE_MAP))
