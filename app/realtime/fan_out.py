"""The open streams of a process, and which of them each event goes to."""

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from uuid import UUID

from app.realtime.contract import EndReason, NoRoomForStream, TooManyStreams
from app.realtime.event_stream import EventStream
from app.realtime.event_visibility import EventRow, Eyes, eyes_of, is_wanted, seen_with
from app.realtime.event_wire import event_block
from app.users.contract import scope_of
from app.users.models import Caller


class KeyKind(Enum):
    TASK = "task"
    PERSON = "person"
    INSTITUTION = "institution"


Key = tuple[KeyKind, UUID | int | None]
"""Streams and events are matched by keys, so that an event is compared only with streams that may want it."""
EVERY_INSTITUTION: Key = (KeyKind.INSTITUTION, None)


@dataclass(frozen=True, slots=True)
class Place:
    """How far all streams have come."""

    position: int
    day: date
    """Of the newest event."""


class FanOut:
    def __init__(self, *, most_streams: int, most_per_person: int) -> None:
        self._most_streams = most_streams
        self._most_per_person = most_per_person
        self._lock = threading.Lock()
        self._keys: dict[EventStream, frozenset[Key]] = {}
        self._streams: defaultdict[Key, set[EventStream]] = defaultdict(set)
        self._per_person: Counter[int] = Counter()
        self._place: Place | None = None

    @property
    def place(self) -> Place | None:
        """None while there is no stream."""
        return self._place

    @property
    def count(self) -> int:
        return len(self._keys)

    def streams(self) -> list[EventStream]:
        with self._lock:
            return list(self._keys)

    def _check_room(self, person_id: int) -> None:
        if self._per_person[person_id] >= self._most_per_person:
            raise TooManyStreams(f"Only {self._most_per_person} streams of one person are open.", retry_after_s=30)
        if len(self._keys) >= self._most_streams:
            raise NoRoomForStream("Too many streams are open at this moment.")

    def add(self, stream: EventStream, newest: Place) -> None:
        """The first stream begins at the newest place. Raises `TooManyStreams` and `NoRoomForStream`."""
        with self._lock:
            self._check_room(stream.caller.id)
            self._place = self._place or newest
            stream.begin_at(self._place.position)
            self._per_person[stream.caller.id] += 1
            self._index(stream)

    def remove(self, stream: EventStream) -> None:
        """Harmless to repeat."""
        with self._lock:
            if stream not in self._keys:
                return
            self._forget(stream)
            self._per_person[stream.caller.id] -= 1
            if not self._per_person[stream.caller.id]:
                del self._per_person[stream.caller.id]
            if not self._keys:
                self._place = None

    def change_caller(self, stream: EventStream, caller: Caller) -> None:
        """The same person, with another role or institution."""
        with self._lock:
            stream.caller = caller
            if stream in self._keys:
                self._forget(stream)
                self._index(stream)

    def begin_anew(self, at: Place) -> None:
        """Ends all streams: what they have sent is not in the database any more. New ones begin at this place."""
        with self._lock:
            self._place = at if self._keys else None
            old = list(self._keys)
        for stream in old:
            stream.end(EndReason.RESTORED)

    def deliver(self, rows: Sequence[EventRow], reached: Place) -> int:
        """Puts each event into the queues of those who see it. Returns into how many."""
        touched: set[EventStream] = set()
        delivered = 0
        with self._lock:
            # The streams that this was read for may have gone, and new ones begun at a later place.
            if self._place is None or reached.position <= self._place.position:
                return 0
            for row in rows:
                if row.id > self._place.position:
                    receivers = self._put(row)
                    touched.update(receivers)
                    delivered += len(receivers)
            self._place = reached
        _wake(touched)
        return delivered

    def _put(self, row: EventRow) -> list[EventStream]:
        blocks: dict[Eyes, bytes] = {}
        receivers: list[EventStream] = []
        for stream in set[EventStream]().union(*(self._streams[key] for key in _keys_of(row) if key in self._streams)):
            eyes = eyes_of(stream.caller, row) if is_wanted(stream.wanted, row) else None
            if eyes is not None:
                if eyes not in blocks:
                    blocks[eyes] = event_block(seen_with(eyes, row))
                stream.put((row.id, blocks[eyes]))
                receivers.append(stream)
        return receivers

    def _index(self, stream: EventStream) -> None:
        keys = frozenset(_keys_for(stream))
        self._keys[stream] = keys
        for key in keys:
            self._streams[key].add(stream)

    def _forget(self, stream: EventStream) -> None:
        for key in self._keys.pop(stream):
            self._streams[key].discard(stream)
            if not self._streams[key]:
                del self._streams[key]


def _keys_for(stream: EventStream) -> Iterable[Key]:
    if stream.wanted.task_id is not None:
        yield KeyKind.TASK, stream.wanted.task_id
        return
    yield KeyKind.PERSON, stream.caller.id
    if stream.caller.is_coordinator:
        yield KeyKind.INSTITUTION, scope_of(stream.caller).institution_id


def _keys_of(row: EventRow) -> Iterable[Key]:
    yield KeyKind.TASK, row.task_id
    yield KeyKind.PERSON, row.elder_id
    yield KeyKind.PERSON, row.person_id
    yield EVERY_INSTITUTION
    yield from ((KeyKind.INSTITUTION, institution) for institution in row.institutions if institution is not None)


def _wake(streams: Iterable[EventStream]) -> None:
    """One call for all streams of a loop, because each call costs a system call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[EventStream]] = {}
    for stream in streams:
        if stream.loop is not None and not stream.loop.is_closed():
            by_loop.setdefault(stream.loop, []).append(stream)
    for loop, sleeping in by_loop.items():
        loop.call_soon_threadsafe(_set_all, sleeping)


def _set_all(streams: Sequence[EventStream]) -> None:
    for stream in streams:
        stream.woken.set()
