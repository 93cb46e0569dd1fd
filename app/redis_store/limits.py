"""Rate limits per user, counted in Redis for all processes together. Without Redis each process counts for itself,
which is less strict but better than refusing or waiting.
"""

import threading
import time
from functools import cached_property
from typing import Any, cast

import limits
import redis
import structlog
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

from app.foundation.errors import TooManyRequests
from app.redis_store.client import without_retries

log = structlog.get_logger(__name__)

TIMEOUT_S = 0.25
PAUSE_S = 2.0
"""After a failure Redis is not used for this long, so that not every request waits for the timeout."""


class PerUserLimit:
    def __init__(self, name: str, per_minute: int, redis_url: str) -> None:
        self._name = name
        self._item = limits.RateLimitItemPerMinute(per_minute)
        pool = cast(Any, redis.BlockingConnectionPool).from_url(
            redis_url,
            max_connections=16,
            timeout=TIMEOUT_S,
            **without_retries(TIMEOUT_S),
        )
        self._pool: redis.BlockingConnectionPool = pool
        self._shared = MovingWindowRateLimiter(RedisStorage(redis_url, connection_pool=pool, key_prefix="limit"))
        self._lock = threading.Lock()
        self._redis_unused_until = 0.0

    @cached_property
    def _own(self) -> MovingWindowRateLimiter:
        """Made when Redis fails, because it starts a thread, and the process may fork after this limit was created."""
        return MovingWindowRateLimiter(MemoryStorage())

    def hit(self, user_id: int) -> None:
        """Counts one call, or raises `TooManyRequests` with the time until the next one is allowed."""
        try:
            self._hit(self._shared if time.monotonic() >= self._redis_unused_until else self._own, user_id)
        except redis.RedisError as error:
            with self._lock:
                self._redis_unused_until = time.monotonic() + PAUSE_S
            log.warning("limit_counted_without_redis", limit=self._name, kind=type(error).__name__)
            self._hit(self._own, user_id)

    def _hit(self, limiter: MovingWindowRateLimiter, user_id: int) -> None:
        if not limiter.hit(self._item, self._name, str(user_id)):
            reset_at = limiter.get_window_stats(self._item, self._name, str(user_id)).reset_time
            wait_s = min(60, max(1, round(reset_at - time.time() + 0.5)))
            raise TooManyRequests(f"Only {self._item.amount} of these are taken in a minute.", retry_after_s=wait_s)

    def close(self) -> None:
        self._pool.disconnect()
