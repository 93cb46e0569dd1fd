"""What other packages may know of the roster: errors, and the values that its functions take and return."""

from app.foundation.errors import NotFound


class UnknownKind(NotFound):
    """There is no such kind of list."""

    code = "unknown_kind"
