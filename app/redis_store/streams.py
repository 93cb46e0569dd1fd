"""Redis streams: adding entries, and reading them as one consumer of a group. Delivery is at least once, so readers
have to recognise an entry that they have read before.
"""

import os
import secrets
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import redis

from app.redis_store.client import without_retries
from app.redis_store.contract import RedisUnavailable

FIELD = b"payload"
MOST_KEPT = 100_000
"""The approximate length of our streams. A consumer that falls further behind loses the oldest entries."""
REMOVED_AFTER_MS = 3_600_000
"""A consumer without pending entries is removed when it has been idle for this long."""
CALL_S = 2.0


@dataclass(frozen=True)
class StreamEntry:
    id: str
    payload: bytes = field(repr=False)
    """The field `payload`; empty if the entry has no such field."""


class Outlet:
    """Adds entries to streams. Safe to share between threads."""

    def __init__(self, redis_url: str, timeout_s: float = CALL_S) -> None:
        self._client = connect_bytes(redis_url, timeout_s)

    def add(self, stream: str, payloads: Sequence[str]) -> int:
        """Returns how many payloads, counted from the first, Redis has confirmed."""
        with _translated():
            pipe = self._client.pipeline(transaction=False)
            for payload in payloads:
                pipe.xadd(stream, {FIELD: payload}, maxlen=MOST_KEPT, approximate=True)
            answers: list[object] = pipe.execute(raise_on_error=False)
        return next((n for n, answer in enumerate(answers) if isinstance(answer, Exception)), len(answers))

    def close(self) -> None:
        self._client.close()


class Inlet:
    """Reads a stream as one consumer of a group. Not to be shared between threads, because its reads block."""

    def __init__(self, redis_url: str, stream: str, group: str, *, block_s: float) -> None:
        # A blocking read must end before the client's socket timeout.
        self._client = connect_bytes(redis_url, block_s + CALL_S)
        self._stream, self._group, self._block_ms = stream, group, int(block_s * 1000)
        self.consumer = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._joined = False

    def read(self, most: int) -> list[StreamEntry]:
        """Entries that no consumer of the group has read. Waits up to `block_s` for them."""
        with self._joining():
            reply = self._client.xreadgroup(
                self._group, self.consumer, {self._stream: ">"}, count=most, block=self._block_ms
            )
        return _entries(reply[0][1]) if reply else []

    def claim(self, most: int, idle_s: float) -> list[StreamEntry]:
        """Entries that a consumer read and did not acknowledge for `idle_s`, the oldest first."""
        start: bytes | str = "0-0"
        with self._joining():
            while True:
                # Redis scans a bounded number at a time and returns the position to continue from.
                start, entries, *_ = self._client.xautoclaim(
                    self._stream, self._group, self.consumer, int(idle_s * 1000), start, count=most
                )
                if entries or start == b"0-0":
                    return _entries(entries)

    def answer(self, entries: Sequence[StreamEntry]) -> None:
        """Acknowledges entries, so that no consumer of the group reads them again."""
        if entries:
            with self._joining():
                self._client.xack(self._stream, self._group, *(entry.id for entry in entries))

    def close(self) -> None:
        """Removes this consumer from the group if all its entries are acknowledged."""
        try:
            if self._joined and not self._unacknowledged():
                self._client.xgroup_delconsumer(self._stream, self._group, self.consumer)
        except redis.RedisError:
            self._joined = False
        self._client.close()

    def _unacknowledged(self) -> int:
        return len(self._client.xpending_range(self._stream, self._group, "-", "+", 1, consumername=self.consumer))

    @contextmanager
    def _joining(self) -> Generator[None]:
        """Creates the group if it is missing, also after Redis lost it. A new group reads the stream from its
        beginning."""
        with _translated():
            if not self._joined:
                self._join()
            try:
                yield
            except redis.ResponseError as error:
                self._joined = False
                raise RedisUnavailable(f"Redis refused: {str(error).split(' ')[0]}.") from error

    def _join(self) -> None:
        try:
            self._client.xgroup_create(self._stream, self._group, id="0", mkstream=True)
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise
        self._joined = True
        self._remove_idle_consumers()

    def _remove_idle_consumers(self) -> None:
        """Each process has its own consumer, and a killed process leaves its consumer behind."""
        for consumer in self._client.xinfo_consumers(self._stream, self._group):
            if consumer["pending"] == 0 and consumer["idle"] > REMOVED_AFTER_MS:
                self._client.xgroup_delconsumer(self._stream, self._group, consumer["name"])


def _entries(entries: list[tuple[bytes | None, dict[bytes, bytes]]]) -> list[StreamEntry]:
    return [StreamEntry(id_.decode(), fields.get(FIELD, b"")) for id_, fields in entries if id_ is not None]


def connect_bytes(redis_url: str, timeout_s: float) -> Any:
    # Replies stay bytes, because entries of other services may hold any bytes.
    options = without_retries(timeout_s) | {"socket_connect_timeout": CALL_S / 2, "socket_keepalive": True}
    return cast(Any, redis.Redis).from_url(redis_url, **options)


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except redis.RedisError as error:
        raise RedisUnavailable("Redis does not answer.") from error
