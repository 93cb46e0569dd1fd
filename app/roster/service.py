"""The front door of the roster."""

from app.roster.feed.archives import archive_folder, find_archive, write_archive
from app.roster.feed.change_pages import read_after, read_window
from app.roster.feed.consumers import TOKEN_PREFIX, create_consumer, find_consumer, list_consumers, revoke_consumer
from app.roster.kinds.known_kinds import kind_named, list_named
from app.roster.nightly import has_pushed_list, keep_pushed_list, sync
from app.roster.people.forget_listed import count_listed_rows, unbind_person
from app.roster.people.old_listed_people import OLD_LISTED_PEOPLE
from app.roster.people.service import apply_people, removals_would_end
from app.roster.runs import approve_run, get_run, list_runs, read_load

__all__ = [
    "OLD_LISTED_PEOPLE",
    "TOKEN_PREFIX",
    "apply_people",
    "approve_run",
    "archive_folder",
    "count_listed_rows",
    "create_consumer",
    "find_archive",
    "find_consumer",
    "get_run",
    "has_pushed_list",
    "keep_pushed_list",
    "kind_named",
    "list_consumers",
    "list_named",
    "list_runs",
    "read_after",
    "read_load",
    "read_window",
    "removals_would_end",
    "revoke_consumer",
    "sync",
    "unbind_person",
    "write_archive",
]
