"""Users, for administrators; and the duty of students, for coordinators."""

from typing import Any

import structlog

from app.api.access import ADMIN, COORDINATORS
from app.api.routing import Call, Reply, Routes
from app.api.schemas import (
    AvailabilityBody,
    NewUserBody,
    PageJson,
    UserChangesBody,
    UserJson,
    UsersQuery,
    lat_lon,
)
from app.api.validation import PathIdentifier
from app.foundation.errors import AppError, Conflict, InvalidValue, NotFound
from app.matching.contract import Overtaken
from app.users import service as users
from app.users.contract import FirebaseUidTaken, UserNotFound, search_people
from app.users.models import LatLon, Role

log = structlog.get_logger(__name__)

routes = Routes("Users")


class CannotDeactivateYourself(Conflict):
    """An administrator cannot deactivate themselves."""

    code = "cannot_deactivate_yourself"


@routes.add("POST", "/users", who=ADMIN, answers={201: UserJson}, errors=(FirebaseUidTaken,))
def create_user(call: Call, body: NewUserBody) -> Reply:
    """Add a user. A new student is on duty."""
    new = body.to_new_user()
    with call.services.db.transaction() as conn:
        user = users.create_user(conn, new)
    if user.role is Role.STUDENT and user.active and new.location:
        _announce_student(call, user.id, new.location)
    return Reply(UserJson.model_validate(user), headers={"Location": f"/users/{user.id}"})


def _announce_student(call: Call, student_id: int, place: LatLon) -> None:
    """A hint for tasks that wait for a student nearby. The location is stored already, so the hint may be lost."""
    try:
        call.services.matching.set_location(student_id, place, is_reported=False)
    except AppError as error:
        log.warning("new_student_not_announced", student_id=student_id, code=error.code)


@routes.add("GET", "/users", who=ADMIN, answers={200: PageJson[UserJson]}, errors=(InvalidValue,))
def list_users(call: Call, query: UsersQuery) -> PageJson[UserJson]:
    """List users, newest first."""
    search = None if query.search is None else search_people(query.search)
    with call.services.db.reading() as conn:
        page = users.list_users(
            conn, role=query.role, active=query.active, search=search, cursor=query.cursor, limit=query.limit
        )
    return PageJson[UserJson].model_validate(page)


@routes.add("GET", "/users/{userId}", who=ADMIN, answers={200: UserJson}, errors=(UserNotFound,))
def get_user(call: Call, user_id: PathIdentifier) -> UserJson:
    """Show one user."""
    with call.services.db.reading() as conn:
        return UserJson.model_validate(users.get_user(conn, user_id))


@routes.add(
    "PATCH",
    "/users/{userId}",
    who=ADMIN,
    answers={200: UserJson},
    errors=(UserNotFound, InvalidValue, FirebaseUidTaken, CannotDeactivateYourself, Overtaken),
)
def patch_user(call: Call, user_id: PathIdentifier, body: UserChangesBody) -> UserJson:
    """Change a user.

    Absent fields stay as they are; null empties a field that may be empty. The role cannot be changed.
    """
    given = body.model_fields_set
    if "active" in given and not body.active and user_id == call.caller.id:
        raise CannotDeactivateYourself("You cannot deactivate yourself.")
    with call.services.db.transaction() as conn:
        is_student = users.get_user(conn, user_id).role is Role.STUDENT
        _refuse_student_without_location(is_student, body)
        users.patch_user(conn, user_id, _plain_changes(body, is_student))
    # Location and activity of a student affect offers, so matching changes them. Both are harmless to repeat.
    new_place = lat_lon(body.location)
    if is_student and new_place is not None:
        call.services.matching.set_location(user_id, new_place, is_reported=False)
    if "active" in given:
        call.services.matching.set_active(user_id, body.active)
    with call.services.db.transaction() as conn:
        return UserJson.model_validate(users.get_user(conn, user_id))


@routes.add("PUT", "/users/{userId}/availability", who=COORDINATORS, answers={204: None}, errors=(NotFound, Overtaken))
def put_availability_of(call: Call, user_id: PathIdentifier, body: AvailabilityBody) -> Reply:
    """Put a student on duty, or off duty until a coordinator says otherwise.

    A student who withdrew too often goes on duty again only by this call.
    """
    call.services.matching.set_duty_of(call.scope, user_id, body.on_duty)
    return Reply(None)


def _refuse_student_without_location(is_student: bool, body: UserChangesBody) -> None:
    if is_student and "location" in body.model_fields_set and body.location is None:
        raise InvalidValue("location", "of a student cannot be emptied; deactivate the student instead")


def _plain_changes(body: UserChangesBody, is_student: bool) -> dict[str, Any]:
    plain = ("name", "phone", "locale", "institution_id", "firebase_uid")
    changes: dict[str, Any] = {field: getattr(body, field) for field in plain if field in body.model_fields_set}
    if "location" in body.model_fields_set and not is_student:
        changes["home"] = lat_lon(body.location)
    return changes
