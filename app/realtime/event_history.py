"""The events that a stream has missed, in pages. Coordinators of one institution see the same, so they share what was
read: after a restart or a lost network many resume at once, from nearly the same place."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock

from app.db.database import Database
from app.realtime import event_log
from app.realtime.contract import EventType
from app.realtime.event_log import Types
from app.realtime.event_stream import Block, EventStream
from app.realtime.event_visibility import EventRow, Eyes, eyes_of, is_wanted, seen_with
from app.realtime.event_wire import event_block
from app.users.contract import scope_of

PAGE = 500
SHARED_FOR_S = 5.0
"""Names and counts in events are those of the moment in which they are read."""
MOST_SHARED = 32
"""Pages, of about 150 KB each."""

Page = tuple[Sequence[Block], int | None]
"""Blocks, and the position that was reached; None if the end was. It may be beyond the end of the history, because
another stream with a longer one has read it: a stream leaves out of its queue what it has sent already."""
Key = tuple[int | None, Types, int]
"""Institution, types, and the position after which the page begins."""


class EventHistory:
    def __init__(self, db: Database, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._monotonic = monotonic
        self._lock = Lock()
        self._shared: OrderedDict[Key, tuple[float, Page]] = OrderedDict()

    def page(self, stream: EventStream, after: int) -> Page:
        # A check of its token may change the caller meanwhile.
        caller, wanted, until = stream.caller, stream.wanted, stream.live_from
        if wanted.task_id is None and caller.is_coordinator:
            blocks, reached = self._of_scope((scope_of(caller).institution_id, wanted.types, after), until)
            if wanted.types is not None and EventType.MESSAGE_ARRIVED not in wanted.types:
                return blocks, reached
            with self._db.reading() as conn:
                own = event_log.read_messages(conn, caller.id, after, until if reached is None else reached)
            return sorted([*blocks, *_blocks((row, Eyes.SELF) for row in own)]) if own else blocks, reached
        with self._db.reading() as conn:
            page = event_log.read_history(conn, caller, wanted, after, until, PAGE)
        seen = ((row, eyes_of(caller, row)) for row in page.rows if is_wanted(wanted, row))
        return _blocks(seen), None if page.is_last else page.until

    def _of_scope(self, key: Key, until: int) -> Page:
        with self._lock:
            read_at, page = self._shared.get(key, (0.0, None))
            if page is not None and self._monotonic() - read_at < SHARED_FOR_S:
                return page
        institution_id, types, after = key
        with self._db.transaction() as conn:
            found = event_log.read_scope(conn, institution_id, types, after, until, PAGE)
        page = _blocks((row, Eyes.COORDINATOR) for row in found.rows), found.until
        with self._lock:
            self._shared[key] = self._monotonic(), page
            self._shared.move_to_end(key)
            while len(self._shared) > MOST_SHARED:
                self._shared.popitem(last=False)
        return page


def _blocks(seen: Iterable[tuple[EventRow, Eyes | None]]) -> list[Block]:
    return [(row.id, event_block(seen_with(eyes, row))) for row, eyes in seen if eyes is not None]
