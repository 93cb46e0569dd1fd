"""The errors and values of the feed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.foundation.errors import Gone, NotFound
from app.roster.sync.models import ConsumerScope


class NoListYet(NotFound):
    """No list of this kind has been read yet, so there are neither changes nor an archive."""

    code = "no_list_yet"


class ArchiveNotFound(NotFound):
    """There is no archive of this kind yet."""

    code = "archive_not_found"


class ConsumerNotFound(NotFound):
    code = "consumer_not_found"


class ChangesGone(Gone):
    """These changes are not kept any more: read `archive`, and go on from `cursor`. Both are null while there is no
    archive."""

    code = "changes_gone"

    def __init__(self, kind: str, cursor: str | None) -> None:
        archive = None if cursor is None else f"/api/v1/{kind}/archives/latest"
        super().__init__("These changes are not kept any more. Read the archive.", archive=archive, cursor=cursor)


@dataclass(frozen=True)
class ChangesWindow:
    """Changes after `since`, up to and with `until`. Times without an offset are service time."""

    since: datetime
    until: datetime | None
    """None for all changes so far."""
    page: int
    size: int


@dataclass(frozen=True)
class ChangesPage:
    changes: Sequence[str] = field(repr=False)
    """Each is the JSON of one change."""
    total: int
    page: int
    size: int
    until: str
    next_cursor: str


@dataclass(frozen=True)
class NewestArchive:
    name: str
    cursor: str
    """Of the changes that the archive does not hold."""
    until: str
    """The time of the last run that the archive holds, as answers of the feed show times."""


@dataclass(frozen=True)
class Consumer:
    """Another service that may read the changes of a kind, or push its lists."""

    id: int
    kind: str
    name: str
    scope: ConsumerScope
    created_at: datetime
    used_at: datetime | None
    """To the minute."""
    revoked_at: datetime | None


@dataclass(frozen=True)
class NewConsumer:
    consumer: Consumer
    token: str = field(repr=False)
    """It is not kept and can never be shown again."""
