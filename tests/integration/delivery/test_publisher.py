"""Events are published on their streams in order, and wait in PostgreSQL while Redis is away."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.api.services import Services
from app.db.database import Database
from app.db.outbox import Event, put
from app.delivery.actions.result_format import PUBLISHED, Topic
from app.foundation.errors import Unavailable
from app.redis_store.publisher import MOST_AT_ONCE, Publisher
from app.redis_store.streams import Outlet
from app.users.models import Caller, Role
from tests.support import mishaps
from tests.support.depth import passages
from tests.support.silent_gate import SilentGate, silent_gate
from tests.support.streams import PREFIX, bare, rows, told, wait_until
from tests.torture.proxy import Proxy

WHAT = ("publish", Caller(0, Role.ADMIN, "", "tr", None), None, "")


@pytest.fixture
def client(services: Services) -> Iterator[Any]:
    client = bare(services)
    yield client
    client.close()


@pytest.fixture
def publisher(services: Services) -> Iterator[Publisher]:
    outlet = Outlet(services.settings.redis_url)
    yield Publisher(services.db, outlet, PREFIX, PUBLISHED)
    outlet.close()


def put_some(db: Database, number: int, topic: Topic = Topic.EXECUTED, start: int = 0) -> None:
    with db.transaction() as conn:
        put(conn, [Event(topic, {"n": n, "kim": "Ayşe"}) for n in range(start, start + number)])


def numbers(client: Any, topic: Topic = Topic.EXECUTED) -> list[int]:
    return [one["n"] for one in told(client, topic)]


def waiting(db: Database) -> int:
    return rows(db, "SELECT count(*) AS n FROM action_events")[0].n


def outlet_through(services: Services, port: int, timeout_s: float = 0.2) -> Outlet:
    url = urlsplit(services.settings.redis_url)
    return Outlet(services.settings.redis_url.replace(f":{url.port}", f":{port}"), timeout_s)


def test_events_are_published_in_order_on_their_streams(db: Database, client: Any, publisher: Publisher):
    put_some(db, 3)
    put_some(db, 2, Topic.DEAD_LETTER)
    assert publisher.run_once() == 5
    assert told(client, Topic.EXECUTED)[0] == {"n": 0, "kim": "Ayşe"}
    assert (numbers(client), numbers(client, Topic.DEAD_LETTER)) == ([0, 1, 2], [0, 1])
    assert sorted(client.keys("cinga.*")) == ["cinga.action.executed", "cinga.dlq.action"]
    assert (waiting(db), publisher.run_once()) == (0, 0)


def test_more_events_than_one_batch_are_published_in_order(db: Database, client: Any, publisher: Publisher):
    put_some(db, 2 * MOST_AT_ONCE + 1)
    while publisher.run_once():
        pass
    assert numbers(client) == list(range(2 * MOST_AT_ONCE + 1))


def test_parallel_publishers_publish_each_event_once_and_in_order(services: Services, db: Database, client: Any):
    put_some(db, 3000)
    outlets = [Outlet(services.settings.redis_url) for _ in range(4)]
    together = threading.Barrier(4)

    def work(outlet: Outlet) -> None:
        together.wait()
        while waiting(db):
            Publisher(db, outlet, PREFIX, PUBLISHED).run_once()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, outlets))
    assert numbers(client) == list(range(3000))
    for outlet in outlets:
        outlet.close()


@pytest.mark.parametrize("place", ["sql.statement", "sql.commit", "sql.committed", "publisher.told"])
def test_killed_publisher_loses_no_event(
    services: Services, db: Database, client: Any, publisher: Publisher, place: str
):
    for turn, passage in enumerate(passages(30), 1):
        put_some(db, 2, start=2 * turn)
        died = mishaps.Step(services.settings, f"{place}=kill@{passage}", *WHAT).end().died
        # PostgreSQL takes a moment to notice a killed client and to free its locks.
        wait_until(lambda: publisher.run_once() == 0 and waiting(db) == 0)
        # At least once: an event is published again if the publisher was killed before it recorded the first time.
        assert sorted(set(numbers(client))) == list(range(2, 2 * turn + 2))
        if not died:
            assert passage > 1, f"the publisher never passes {place}"
            return
    raise AssertionError("30 passages did not reach the end of a run")


def test_events_wait_while_redis_is_away(services: Services, db: Database, client: Any):
    port = urlsplit(services.settings.redis_url).port or 0
    proxy = Proxy(9)
    publisher = Publisher(db, outlet_through(services, proxy.port), PREFIX, PUBLISHED)
    put_some(db, 3)
    for _ in range(3):
        with pytest.raises(Unavailable):
            publisher.run_once()
    assert (waiting(db), numbers(client)) == (3, [])
    proxy.lead_to(port)
    assert publisher.run_once() == 3
    assert (waiting(db), numbers(client)) == (0, [0, 1, 2])
    proxy.close()


def test_silent_redis_delays_the_publisher_only_for_its_timeout(services: Services, db: Database, client: Any):
    gate: SilentGate
    with silent_gate("127.0.0.1", urlsplit(services.settings.redis_url).port or 0) as gate:
        publisher = Publisher(db, outlet_through(services, gate.port), PREFIX, PUBLISHED)
        put_some(db, 1)
        publisher.run_once()
        gate.fall_silent()
        put_some(db, 2, start=1)
        began = time.monotonic()
        with pytest.raises(Unavailable):
            publisher.run_once()
        assert time.monotonic() - began < 3
        assert waiting(db) == 2
        gate.speak()
        publisher.run_once()
    assert waiting(db) == 0
    assert sorted(set(numbers(client))) == [0, 1, 2]


def test_refused_stream_does_not_stop_other_streams(db: Database, client: Any, publisher: Publisher):
    client.set(f"{PREFIX}.{Topic.EXECUTED}", "somebody else's")
    put_some(db, 2, Topic.EXECUTED)
    put_some(db, 2, Topic.HANDOVER)
    with pytest.raises(Unavailable):
        publisher.run_once()
    assert numbers(client, Topic.HANDOVER) == [0, 1]
    assert waiting(db) == 2
    client.delete(f"{PREFIX}.{Topic.EXECUTED}")
    assert publisher.run_once() == 2
    assert numbers(client) == [0, 1]


def test_running_publisher_survives_an_absent_redis_and_stops(services: Services, db: Database, client: Any):
    port = urlsplit(services.settings.redis_url).port or 0
    proxy = Proxy(9)
    publisher = Publisher(db, outlet_through(services, proxy.port), PREFIX, PUBLISHED, poll_s=30)
    stop = threading.Event()
    worker = threading.Thread(target=publisher.run, args=(stop,))
    put_some(db, 3)
    worker.start()
    try:
        proxy.lead_to(port)
        wait_until(lambda: len(numbers(client)) == 3)
        put_some(db, 2, start=3)
        publisher.bell.ring()
        wait_until(lambda: len(numbers(client)) == 5)
    finally:
        stop.set()
        publisher.bell.ring()
        worker.join(10)
        proxy.close()
    assert not worker.is_alive()
    assert numbers(client) == [0, 1, 2, 3, 4]
