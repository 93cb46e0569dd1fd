"""A connection to Redis with short timeouts."""

import threading
import time
from collections.abc import Sequence
from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError
from redis.retry import Retry

from app.redis_store.contract import RedisUnavailable

DOWN_PAUSE_S = 1.0


def without_retries(timeout_s: float) -> dict[str, Any]:
    """Options of a connection. No retries and short timeouts: a press must not wait for a Redis that is down, and a
    command that the client repeats would take effect twice: a script counts twice, XADD adds its entry twice."""
    return {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
    }


def open_client(redis_url: str, *, timeout_s: float = 0.5, pool_size: int = 16) -> Any:
    pool: Any = cast(Any, redis.BlockingConnectionPool).from_url(
        redis_url,
        max_connections=pool_size,
        timeout=timeout_s,
        decode_responses=True,
        **without_retries(timeout_s),
    )
    return redis.Redis.from_pool(pool)


class FastScript:
    """A Lua script. The client's own way to run one takes twice as long, because it prepares for retries, which we
    never want, and counts for OpenTelemetry."""

    def __init__(self, client: Any, text: str) -> None:
        self._pool = client.connection_pool
        self._script = client.register_script(text)

    def __call__(self, keys: Sequence[str], args: Sequence[Any]) -> Any:
        try:
            return self._run(keys, args)
        except NoScriptError:
            # Redis has lost its scripts, or never had this one.
            return self._script(keys=keys, args=args)

    def _run(self, keys: Sequence[str], args: Sequence[Any]) -> Any:
        connection = self._pool.get_connection()
        try:
            # Both close the connection if they fail, and the pool connects it again.
            connection.send_command("EVALSHA", self._script.sha, len(keys), *keys, *args)
            return connection.read_response()
        finally:
            self._pool.release(connection)


class Reach:
    """`with reach:` around each call translates the driver's errors. After an error, calls are refused at once for a
    moment, so that they need not wait for the timeout."""

    def __init__(self, down_pause_s: float = DOWN_PAUSE_S) -> None:
        self._down_pause_s = down_pause_s
        self._down_until: float | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        """After the pause only one caller tries, and the others are still refused. While Redis does not answer, each
        try blocks a thread until the timeout, and otherwise all threads of the process would block."""
        with self._lock:
            if self._down_until is None:
                return
            if time.monotonic() < self._down_until:
                raise RedisUnavailable("Redis did not answer a moment ago.")
            self._note_down()

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, (redis.ConnectionError, redis.TimeoutError)):
            self._note_down()
            raise RedisUnavailable("Redis does not answer.") from error
        if error is None or isinstance(error, redis.ResponseError):
            self._down_until = None
        if isinstance(error, redis.ResponseError):
            raise RedisUnavailable("Redis refused a command.") from error

    def _note_down(self) -> None:
        self._down_until = time.monotonic() + self._down_pause_s
