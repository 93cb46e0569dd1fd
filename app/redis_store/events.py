"""Expiry events of Redis for pending keys. An event may be late or missing, so the ticker and the reconciler find the
same tasks."""

import time
from types import TracebackType
from typing import Any
from uuid import UUID

import redis

from app.redis_store import keys
from app.redis_store.contract import RedisUnavailable

NEEDED_FLAGS = "Ex"
MOST_AT_ONCE = 1000


class EventsForbidden(Exception):
    """This Redis refuses CONFIG, so an operator has to enable the events."""


class ExpiryEvents:
    """Has its own connection: a blocking read does not fit the short timeouts of all other calls."""

    def __init__(self, redis_url: str, health_check_s: float = 5.0) -> None:
        self._health_check_s = health_check_s
        self._client: Any = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            redis_url,
            decode_responses=True,
            # Names of other programs' keys may hold any bytes, and must not raise errors.
            encoding_errors="replace",
            socket_connect_timeout=2,
            socket_timeout=health_check_s,
            socket_keepalive=True,
        )
        database = int(self._client.connection_pool.connection_kwargs.get("db") or 0)
        self._channel = keys.expired_channel(database)
        self._pubsub: Any = None
        self._replied_at = self._pinged_at = 0.0

    def switch_on(self) -> bool:
        """Adds the missing flags to the configuration of Redis; True if a flag was missing."""
        try:
            current = str(self._client.config_get("notify-keyspace-events").get("notify-keyspace-events", ""))
            missing = "".join(flag for flag in NEEDED_FLAGS if flag not in _without_abbreviation(current))
            if missing:
                self._client.config_set("notify-keyspace-events", current + missing)
        except redis.ResponseError as error:
            raise EventsForbidden(str(error)) from error
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise RedisUnavailable("Redis does not answer.") from error
        return bool(missing)

    def __enter__(self) -> "ExpiryEvents":
        try:
            self._pubsub = self._client.pubsub(ignore_subscribe_messages=True)
            self._pubsub.subscribe(self._channel)
            self._replied_at = self._pinged_at = time.monotonic()
        except redis.RedisError as error:
            raise RedisUnavailable("Redis does not let us subscribe.") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pubsub.close()

    def tasks(self, timeout_s: float) -> list[UUID]:
        """Waits up to `timeout_s` for the first event, and returns the tasks of all events that have arrived. One call
        reads a limited number, because the keys of other programs may expire faster than they can be read."""
        try:
            # Reads replies without redis-py's own loop, which takes longer for each: a thousand may come in a second.
            connection = self._pubsub.connection
            self._check_connection(connection)
            found: list[UUID] = []
            for number in range(MOST_AT_ONCE):
                if not connection.can_read(timeout=0 if number else timeout_s):
                    break
                reply: Any = connection.read_response(push_request=True)
                self._replied_at = time.monotonic()
                # Other replies are confirmations of the subscription, and PONG.
                task_id = keys.task_of_pending_key(reply[2]) if reply[0] == "message" else None
                if task_id is not None:
                    found.append(task_id)
            return found
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise RedisUnavailable("The subscription broke.") from error

    def _check_connection(self, connection: Any) -> None:
        """Sends PING after a silence, because a broken subscription looks like one without events."""
        silent_s = time.monotonic() - self._replied_at
        if silent_s > 2 * self._health_check_s:
            raise RedisUnavailable("The subscription does not answer.")
        if silent_s > self._health_check_s and self._pinged_at <= self._replied_at:
            self._pinged_at = time.monotonic()
            connection.send_command("PING", check_health=False)

    def close(self) -> None:
        self._client.close()


def _without_abbreviation(flags: str) -> str:
    """`A` stands for all kinds of events, including expired."""
    return flags + "x" if "A" in flags else flags
