"""Words to whoever listens at this moment. Nothing is kept of them: they only save a listener the wait for its next
look at what is true."""

from collections.abc import Sequence
from typing import Any

from app.redis_store.client import Reach, open_client

# A channel sends them after its commit, on the time of messages that wait behind.
TIMEOUT_S = 0.25


class Hints:
    def __init__(self, client: Any) -> None:
        self._client = client
        self._reach = Reach()

    def publish(self, said: Sequence[tuple[str, str]]) -> None:
        """Each a channel and what is said on it; raises `RedisUnavailable` where nobody can hear it."""
        with self._reach:
            pipe = self._client.pipeline(transaction=False)
            for channel, words in said:
                pipe.publish(channel, words)
            pipe.execute()

    def close(self) -> None:
        self._client.close()


def connect(redis_url: str, pool_size: int) -> Hints:
    return Hints(open_client(redis_url, timeout_s=TIMEOUT_S, pool_size=pool_size))
