"""The values and errors of users that other packages use."""

from app.foundation.errors import Conflict, Forbidden, NotFound
from app.users.people_search import PeopleSearch as PeopleSearch
from app.users.people_search import search_people as search_people
from app.users.staff_scope import EVERYTHING as EVERYTHING
from app.users.staff_scope import REACHED as REACHED
from app.users.staff_scope import StaffScope as StaffScope
from app.users.staff_scope import scope_of as scope_of


class UserNotFound(NotFound):
    """There is no user with this id."""

    code = "user_not_found"


class DeviceNotFound(NotFound):
    """There is no such device of this user."""

    code = "device_not_found"


class DeviceTaken(Conflict):
    """The device belongs to another user, and the request does not have its token."""

    code = "device_taken"


class UserDeactivated(Forbidden):
    """The user exists, but may not use the service any more."""

    code = "user_deactivated"


class LastAdmin(Conflict):
    """The only active administrator cannot be forgotten, because nobody could add another one."""

    code = "last_admin"


class FirebaseUidTaken(Conflict):
    """Another user has this Firebase uid."""

    code = "firebase_uid_taken"
