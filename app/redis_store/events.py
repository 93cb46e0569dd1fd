"""Redis's own word that a pending key has run out. It may be late or missing; it is never the only one to tell."""

from collections.abc import Iterator
from types import TracebackType
from typing import Any
from uuid import UUID

import redis

from app.redis_store import keys
from app.redis_store.contract import RedisUnavailable

NEEDED_FLAGS = "Ex"
HEALTH_CHECK_S = 5
MOST_AT_ONCE = 1000


class EventsForbidden(Exception):
    """CONFIG is not allowed here, so an operator has to switch the events on."""


class ExpiryEvents:
    """A connection of its own: a blocking read does not fit the short timeouts of everything else."""

    def __init__(self, redis_url: str) -> None:
        self._client: Any = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            redis_url,
            decode_responses=True,
            # Keys of others may be any bytes; only ours are read.
            encoding_errors="replace",
            socket_connect_timeout=2,
            socket_timeout=HEALTH_CHECK_S,
            health_check_interval=HEALTH_CHECK_S,
            socket_keepalive=True,
        )
        database = int(self._client.connection_pool.connection_kwargs.get("db") or 0)
        self._channel = keys.expired_channel(database)
        self._pubsub: Any = None

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
        except redis.RedisError as error:
            raise RedisUnavailable("Redis does not let us subscribe.") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pubsub.close()

    def tasks(self, timeout_s: float) -> Iterator[UUID]:
        """The task of the next event, if there is one within `timeout_s`, and of those already received. Other
        people's keys expire as well, perhaps without end, so there is a limit to one call."""
        try:
            for number in range(MOST_AT_ONCE):
                message = self._pubsub.get_message(timeout=0 if number else timeout_s)
                if message is None:
                    return
                task_id = keys.task_of_pending_key(str(message["data"]))
                if task_id is not None:
                    yield task_id
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise RedisUnavailable("The subscription broke.") from error

    def close(self) -> None:
        self._client.close()


def _spelled_out(flags: str) -> str:
    """`A` stands for all kinds of events, expired ones among them."""
    return flags + "x" if "A" in flags else flags
