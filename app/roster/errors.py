"""The errors of runs."""

from app.foundation.errors import Conflict, NotFound, Unavailable


class RunNotFound(NotFound):
    """There is no such run of the roster."""

    code = "roster_run_not_found"


class NothingHeldBack(Conflict):
    """A run that held nothing back needs no approval."""

    code = "nothing_held_back"


class RosterFolderMissing(Unavailable):
    """This copy has no folder for lists."""

    code = "roster_folder_missing"


class NoLists(Conflict):
    """No list is named in the settings and none was pushed, or the settings name one that does not exist."""

    code = "no_lists"
