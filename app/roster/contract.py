"""What other packages may know of the roster: errors, and the values that its functions take and return."""

from app.roster.errors import NoLists as NoLists
from app.roster.errors import NothingHeldBack as NothingHeldBack
from app.roster.errors import RosterFolderMissing as RosterFolderMissing
from app.roster.errors import RunNotFound as RunNotFound
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
from app.roster.kinds.known_kinds import UnknownList as UnknownList
from app.roster.lists.list_refused import ListRefused as ListRefused
from app.roster.people.people_report import PeopleReport as PeopleReport
from app.roster.runs import KindLoad as KindLoad
from app.roster.sync.comparison import RunParts as RunParts
from app.roster.sync.models import RunStatus as RunStatus
from app.roster.sync.whole_run import RunReport as RunReport
