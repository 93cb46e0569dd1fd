"""The newest position of events, published as a hint to the other processes of the api."""

import threading
from collections.abc import Callable
from typing import Any

import redis
import structlog

from app.foundation.loop import DoublingPause
from app.redis_store import keys
from app.redis_store.client import Reach, open_client

log = structlog.get_logger(__name__)

TIMEOUT_S = 0.25
LISTEN_S = 1.0
SILENCE_S = 10.0


class EventHeads:
    def __init__(self, redis_url: str) -> None:
        self._client = open_client(redis_url, timeout_s=TIMEOUT_S, pool_size=1)
        self._reach = Reach()
        # Its own connection: a blocking read does not fit the short timeouts of all other calls.
        self._listening: Any = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            redis_url, socket_connect_timeout=2, socket_timeout=SILENCE_S, health_check_interval=SILENCE_S / 2
        )

    def publish(self, head: int) -> None:
        """Raises `RedisUnavailable`."""
        with self._reach:
            self._client.publish(keys.EVENT_HEADS, str(head))

    def follow(self, look: Callable[[], None], stop: threading.Event) -> None:
        """Calls `look` for each hint. While Redis does not answer, there are none."""
        pause = DoublingPause(longest_s=5.0)
        while not stop.is_set():
            try:
                with self._listening.pubsub(ignore_subscribe_messages=True) as pubsub:
                    pubsub.subscribe(keys.EVENT_HEADS)
                    pause.reset()
                    while not stop.is_set():
                        if pubsub.get_message(timeout=LISTEN_S) is not None:
                            look()
            except redis.RedisError as error:
                pause_s = pause.next_s()
                log.warning("event_hints_lost", kind=type(error).__name__, pause_s=pause_s)
                stop.wait(pause_s)

    def close(self) -> None:
        self._client.close()
        self._listening.close()
