"""Expiry events of Redis: switched on without removing other flags, lost, and with CONFIG forbidden."""

import threading
import time
from contextlib import closing
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import UUID

import pytest
import redis

from app.api.services import Services
from app.bootstrap.build_services import build_services
from app.bootstrap.matcher import build_matcher
from app.matching.contract import NewTask
from app.matching.listener import Listener
from app.redis_store.contract import RedisUnavailable
from app.redis_store.events import EventsForbidden, ExpiryEvents
from tests.support.matching import Neighbourhood, eventually, own_redis
from tests.support.silent_gate import silent_gate

FLAG = "notify-keyspace-events"


def flags(url: str) -> set[str]:
    client: Any = redis.Redis.from_url(url, decode_responses=True)
    found = client.config_get(FLAG)[FLAG]
    client.close()
    return set(found)


@pytest.mark.parametrize(
    ("before", "added"),
    [("", True), ("Kg", True), ("Ex", False), ("KEA", False), ("KA", True), ("E", True), ("xK", True)],
)
def test_switch_on_adds_missing_flags_and_keeps_the_others(before: str, added: bool) -> None:
    with own_redis(f"--{FLAG}", before) as url:
        set_before = flags(url)
        events = ExpiryEvents(url)
        assert events.switch_on() is added
        assert flags(url) >= set_before | {"E"}
        assert flags(url) & {"x", "A"}
        assert events.switch_on() is False
        events.close()


def test_only_expired_pending_keys_yield_task_ids() -> None:
    with own_redis() as url:
        client: Any = redis.Redis.from_url(url)
        events = ExpiryEvents(url)
        events.switch_on()
        with events:
            for key in ("other", "pending_assignment:nonsense", f"pending_assignment:{UUID(int=7)}"):
                client.set(key, "1", px=1)
            found: list[UUID] = []
            eventually(lambda: found.extend(events.tasks(timeout_s=0.1)) or found, "the expiry event arrives")
            assert found == [UUID(int=7)]
        events.close()
        client.close()


def test_forbidden_config_raises_events_forbidden() -> None:
    with own_redis("--rename-command", "CONFIG", "") as url:
        events = ExpiryEvents(url)
        with pytest.raises(EventsForbidden):
            events.switch_on()
        events.close()


@pytest.mark.parametrize("environ", [{"offer_ttl_s": 1, "matcher_ticker": False, "matcher_reconciler": False}])
def test_listener_follows_events_that_an_operator_switched_on(
    services: Services, town: Neighbourhood, capsys: pytest.CaptureFixture[str]
) -> None:
    with own_redis("--rename-command", "CONFIG", "", f"--{FLAG}", "Ex") as url:
        own = build_services(services.settings.model_copy(update={"redis_url": url}), role="matcher", pool_size=4)
        matcher = build_matcher(own)
        matcher.start()
        client: Any = redis.Redis.from_url(url)
        eventually(lambda: client.pubsub_numsub("__keyevent@0__:expired")[0][1], "the listener follows the events")
        town.students(10, 20)
        elder = town.elder()
        task_id = own.matching.press(elder, NewTask(elder.id), None).task.id
        eventually(lambda: town.status(task_id) == "TIMED_OUT", "both offers have expired")
        matcher.stop()
        client.close()
        own.close()
    logged = capsys.readouterr()
    assert "expiry_events_need_an_operator" in logged.out + logged.err
    assert "notify-keyspace-events Ex" in logged.out + logged.err


def test_listener_switches_events_on_again() -> None:
    swept: list[str] = []
    stop = threading.Event()
    with own_redis() as url, closing(redis.Redis.from_url(url)) as client:
        events = ExpiryEvents(url)
        listener = Listener(events, cast(Any, NoDueTasks()), lambda: swept.append("swept"), recheck_s=0.1)
        listening = threading.Thread(target=listener.run, args=(stop,))
        listening.start()
        eventually(lambda: swept, "the listener is connected")
        client.config_set(FLAG, "")
        eventually(lambda: flags(url) >= {"E", "x"}, "the flags are set again")
        eventually(lambda: len(swept) == 2, "the listener has asked for a second sweep")
        stop.set()
        listening.join()
        events.close()


class NoDueTasks:
    """Takes no task."""

    def add(self, _task_ids: Any, _room: int | None) -> int:
        return 0


def test_silent_connection_is_given_up(redis_url: str) -> None:
    """A connection without events is kept while Redis answers PING, and given up when it does not."""
    there = urlsplit(redis_url)
    with silent_gate(there.hostname or "127.0.0.1", there.port or 6379) as gate:
        through = there._replace(netloc=f":{there.password or ''}@127.0.0.1:{gate.port}").geturl()
        events = ExpiryEvents(through, health_check_s=0.5)
        with events:
            give_up = time.monotonic() + 1.5
            while time.monotonic() < give_up:
                assert events.tasks(timeout_s=0.05) == [], "an event arrived without an expired key"
            gate.fall_silent()
            with pytest.raises(RedisUnavailable):
                while time.monotonic() < give_up + 20:
                    events.tasks(timeout_s=0.05)
            gate.speak()
        events.close()
