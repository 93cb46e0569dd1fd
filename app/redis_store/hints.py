"""Publishes hints on Redis channels. Redis does not store them; a listener that missed a hint finds the work when it
polls."""

from collections.abc import Sequence
from typing import Any

from app.redis_store.client import Reach, open_client

# Short, because other notifications wait while a channel publishes its hint.
TIMEOUT_S = 0.25


class Hints:
    def __init__(self, client: Any) -> None:
        self._client = client
        self._reach = Reach()

    def publish(self, hints: Sequence[tuple[str, str]]) -> None:
        """Pairs of channel and text. Raises `RedisUnavailable` if Redis does not answer."""
        with self._reach:
            pipe = self._client.pipeline(transaction=False)
            for channel, text in hints:
                pipe.publish(channel, text)
            pipe.execute()

    def close(self) -> None:
        self._client.close()


def connect(redis_url: str, pool_size: int) -> Hints:
    return Hints(open_client(redis_url, timeout_s=TIMEOUT_S, pool_size=pool_size))
