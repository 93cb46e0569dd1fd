"""How people follow their lists."""

from collections.abc import Callable

from sqlalchemy import Connection

from app.db.database import Database
from app.matching.contract import LeftBehind
from app.matching.service import Matching, left_behind
from app.roster.kinds.kind import ColumnType, Kind
from app.roster.people.apply_people import ListOfPeople, go_through_people
from app.roster.people.people_at_risk import people_removed
from app.roster.people.people_report import PeopleReport
from app.roster.sync.models import ChangeType


def apply_people(
    db: Database,
    matching: Matching,
    kind: Kind,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> PeopleReport:
    """After the commit of a run. `progress` is told how many people are done, of how many. Two calls beside each other
    share the work."""
    assert kind.role is not None, "only kinds with a role have people"
    has_places = any(column.type is ColumnType.PLACE for column in kind.source.columns)
    people = ListOfPeople(kind.document_type, kind.role, has_places)
    return go_through_people(db, matching, people, cancelled, progress)


def removals_would_end(conn: Connection, kind: Kind) -> LeftBehind:
    """For a dry run, in its transaction: the open tasks and live offers of the people whom it would remove."""
    return left_behind(conn, people_removed(conn, kind.document_type, ChangeType.REMOVED))
