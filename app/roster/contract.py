"""What other packages may know of the roster: errors, and the values that its functions take and return."""

from app.foundation.errors import Conflict, NotFound, Unavailable
from app.roster.feed.feed_values import ArchiveNotFound as ArchiveNotFound
from app.roster.feed.feed_values import ChangesGone as ChangesGone
from app.roster.feed.feed_values import ChangesPage as ChangesPage
from app.roster.feed.feed_values import ChangesWindow as ChangesWindow
from app.roster.feed.feed_values import Consumer as Consumer
from app.roster.feed.feed_values import ConsumerNotFound as ConsumerNotFound
from app.roster.feed.feed_values import NewConsumer as NewConsumer
from app.roster.feed.feed_values import NewestArchive as NewestArchive
from app.roster.feed.feed_values import NoListYet as NoListYet
from app.roster.kinds.known_kinds import UnknownKind as UnknownKind
from app.roster.people.people_report import PeopleReport as PeopleReport
from app.roster.sync.models import RunStatus as RunStatus
from app.roster.sync.whole_run import RunReport as RunReport


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
