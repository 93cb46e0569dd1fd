"""Redis's own word that a pending key has run out. It may be late or missing; it is never the only one to tell."""

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
    """CONFIG is not allowed here, so an operator has to switch the events on."""


class ExpiryEvents:
    """A connection of its own: a blocking read does not fit the short timeouts of everything else."""

    def __init__(self, redis_url: str, health_check_s: float = 5.0) -> None:
        self._health_check_s = health_check_s
        self._client: Any = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            redis_url,
            decode_responses=True,
            # Keys of others may be any bytes; only ours are read.
            encoding_errors="replace",
            socket_connect_timeout=2,
            socket_timeout=health_check_s,
            socket_keepalive=True,
        )
        database = int(self._client.connection_pool.connection_kwargs.get("db") or 0)
        self._channel = keys.expired_channel(database)
        self._pubsub: Any = None
        self._heard_at = self._asked_at = 0.0

    def switch_on(self) -> bool:
        """Adds what is needed to what is set; True when something had to be added."""
        try:
            current = str(self._client.config_get("notify-keyspace-events").get("notify-keyspace-events", ""))
            missing = "".join(flag for flag in NEEDED_FLAGS if flag not in _spelled_out(current))
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
            self._heard_at = self._asked_at = time.monotonic()
        except redis.RedisError as error:
            raise RedisUnavailable("Redis does not let us subscribe.") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pubsub.close()

    def tasks(self, timeout_s: float) -> list[UUID]:
        """The tasks of the events that have come, after waiting for the first up to `timeout_s`. Other people's keys
        expire as well, perhaps without end, so there is a limit to one call."""
        try:
            # Without the ceremony that redis-py makes of each message: a thousand may come in a second.
            connection = self._pubsub.connection
            self._ask_for_a_sign_of_life(connection)
            found: list[UUID] = []
            for number in range(MOST_AT_ONCE):
                if not connection.can_read(timeout=0 if number else timeout_s):
                    break
                reply: Any = connection.read_response(push_request=True)
                self._heard_at = time.monotonic()
                # Besides messages there are confirmations of the subscription, and PONG.
                task_id = keys.task_of_pending_key(reply[2]) if reply[0] == "message" else None
                if task_id is not None:
                    found.append(task_id)
            return found
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise RedisUnavailable("The subscription broke.") from error

    def _ask_for_a_sign_of_life(self, connection: Any) -> None:
        """Silence is what a working subscription sounds like, and a broken one too."""
        silent_s = time.monotonic() - self._heard_at
        if silent_s > 2 * self._health_check_s:
            raise RedisUnavailable("The subscription has fallen silent.")
        if silent_s > self._health_check_s and self._asked_at <= self._heard_at:
            self._asked_at = time.monotonic()
            connection.send_command("PING", check_health=False)

    def close(self) -> None:
        self._client.close()


def _spelled_out(flags: str) -> str:
    """`A` stands for all kinds of events, expired ones among them."""
    return flags + "x" if "A" in flags else flags
