"""Streams of events on real stores, without a server: a thread runs the event loop that would send them."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from app.api.errors import Unauthenticated
from app.api.identities import Identity, UserId
from app.api.services import Services
from app.bootstrap.realtime import build_realtime
from app.db.database import Database
from app.realtime import event_log
from app.realtime.contract import EventType, Wanted
from app.realtime.event_visibility import EventRow
from app.realtime.metrics import EventMetrics
from app.realtime.service import Realtime
from app.users.models import Caller
from tests.support.matching import NO_LIMITS, Neighbourhood

PATIENCE_S = 20
ALL = Wanted()


@pytest.fixture
def environ() -> dict[str, Any]:
    return NO_LIMITS


@pytest.fixture
def town(services: Services) -> Iterator[Neighbourhood]:
    built = Neighbourhood(services)
    yield built
    built.close()


def written(db: Database) -> list[EventRow]:
    """Gives positions to what is committed, and reads all events."""
    with db.autocommit() as conn:
        while event_log.sequence(conn, 1000).moved:
            continue
        return list(event_log.read_new(conn, 0, event_log.bounds(conn).day, 10_000).rows)


def types(rows: Sequence[EventRow]) -> list[str]:
    return [row.type.value for row in rows]


class Follower:
    """Reads a stream in a loop of its own, as the server does."""

    def __init__(self, realtime: Realtime, who: Caller, wanted: Wanted = ALL, after: int | None = None) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.came = threading.Condition()
        self._reads = threading.Event()
        self._reads.set()
        self._stream = realtime.open_stream(who, str(who.id), wanted, after)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()), daemon=True)
        self._thread.start()

    async def _read(self) -> None:
        async for piece in self._stream:
            found = [json.loads(line[6:]) for line in piece.decode().splitlines() if line.startswith("data: ")]
            with self.came:
                self.events += found
                self.came.notify_all()
            await asyncio.to_thread(self._reads.wait)

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Does not read meanwhile."""
        self._reads.clear()
        yield
        self._reads.set()

    def until(self, look: Callable[[list[Mapping[str, Any]]], bool]) -> list[Mapping[str, Any]]:
        with self.came:
            assert self.came.wait_for(lambda: look(self.events), PATIENCE_S), self.events
            return list(self.events)

    def until_type(self, type_: EventType | str) -> list[str]:
        return [event["type"] for event in self.until(lambda events: any(one["type"] == type_ for one in events))]

    def go(self) -> None:
        self._stream.drain()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@pytest.fixture
def expired() -> set[str]:
    """Tokens that are."""
    return set()


@pytest.fixture
def build(services: Services, expired: set[str]) -> Iterator[Callable[..., Realtime]]:
    """Builds what one process of the api has. A token is the id of its user."""
    built: list[Realtime] = []

    def identify(token: str) -> Identity:
        if token in expired:
            raise Unauthenticated("The token has expired.")
        return UserId(int(token))

    def build(monotonic: Callable[[], float] = time.monotonic, **settings: Any) -> Realtime:
        changed = services.settings.model_copy(update=settings)
        built.append(build_realtime(changed, identify, EventMetrics(), monotonic))
        return built[-1]

    yield build
    for one in built:
        one.close()
