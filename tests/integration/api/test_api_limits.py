"""The rate limit of a user when Redis answers, is away, or does not answer."""

import socket
import time
from collections.abc import Iterator

import pytest

from app.foundation.errors import TooManyRequests
from app.redis_store.limits import TIMEOUT_S, PerUserLimit
from app.settings.settings import Settings


@pytest.fixture
def silent_redis() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


def _exhaust(limit: PerUserLimit, user_id: int, times: int) -> TooManyRequests:
    for _ in range(times):
        limit.hit(user_id)
    with pytest.raises(TooManyRequests) as refused:
        limit.hit(user_id)
    return refused.value


def test_limit_is_shared_by_processes_and_separate_for_users(settings: Settings, clean_stores: None):
    one, two = (PerUserLimit("test", 4, settings.redis_url) for _ in range(2))
    one.hit(1)
    two.hit(1)
    refused = _exhaust(one, 1, 2)
    assert 1 <= refused.retry_after_s <= 60
    with pytest.raises(TooManyRequests):
        two.hit(1)
    two.hit(2)
    one.close()
    two.close()


def test_silent_redis_delays_only_one_request(silent_redis: str):
    limit = PerUserLimit("test", 3, silent_redis)
    began = time.monotonic()
    limit.hit(1)
    first = time.monotonic() - began
    began = time.monotonic()
    assert _exhaust(limit, 1, 2)
    rest = time.monotonic() - began
    assert first < 4 * TIMEOUT_S
    assert rest < TIMEOUT_S
    limit.close()
