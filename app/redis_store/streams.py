"""Redis streams: putting messages on them, and reading them as one of a group.

Everything here is at least once. Whoever reads must know a message that comes again.
"""

import os
import secrets
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from app.redis_store.contract import RedisUnavailable

FIELD = b"payload"
MOST_KEPT = 100_000
"""How long our streams become, roughly: a consumer that is away for longer than that has lost the oldest."""
FORGOTTEN_AFTER_MS = 3_600_000
CALL_S = 2.0


@dataclass(frozen=True)
class StreamEntry:
    id: str
    payload: bytes = field(repr=False)
    """Empty where the message has no such field."""


class Outlet:
    """Where messages leave. Shared by threads as the client is."""

    def __init__(self, redis_url: str, timeout_s: float = CALL_S) -> None:
        self._client = _connect(redis_url, timeout_s)

    def add(self, stream: str, payloads: Sequence[str]) -> int:
        """How many of them, from the first on, Redis has for certain."""
        with _translated():
            pipe = self._client.pipeline(transaction=False)
            for payload in payloads:
                pipe.xadd(stream, {FIELD: payload}, maxlen=MOST_KEPT, approximate=True)
            answers: list[object] = pipe.execute(raise_on_error=False)
        return next((n for n, answer in enumerate(answers) if isinstance(answer, Exception)), len(answers))

    def close(self) -> None:
        self._client.close()


class Inlet:
    """A stream as one consumer of a group sees it. Not shared by threads: its reads block."""

    def __init__(self, redis_url: str, stream: str, group: str, *, block_s: float) -> None:
        # A read that blocks must be over before the client gives up on the connection.
        self._client = _connect(redis_url, block_s + CALL_S)
        self._stream, self._group, self._block_ms = stream, group, int(block_s * 1000)
        self.consumer = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._joined = False

    def read(self, most: int) -> list[StreamEntry]:
        """What nobody of the group has read yet; waits a moment for it."""
        with self._joining():
            reply = self._client.xreadgroup(
                self._group, self.consumer, {self._stream: ">"}, count=most, block=self._block_ms
            )
        return _messages(reply[0][1]) if reply else []

    def claim(self, most: int, idle_s: float) -> list[StreamEntry]:
        """What somebody read and left without an answer for so long, from the oldest on."""
        start: bytes | str = "0-0"
        with self._joining():
            while True:
                # Redis looks at a bounded number at a time, and says where it stopped.
                start, entries, *_ = self._client.xautoclaim(
                    self._stream, self._group, self.consumer, int(idle_s * 1000), start, count=most
                )
                if entries or start == b"0-0":
                    return _messages(entries)

    def answer(self, messages: Sequence[StreamEntry]) -> None:
        if messages:
            with self._joining():
                self._client.xack(self._stream, self._group, *(message.id for message in messages))

    def close(self) -> None:
        """A name that nothing is left to answer under is taken off the group's list."""
        try:
            if self._joined and not self._unanswered():
                self._client.xgroup_delconsumer(self._stream, self._group, self.consumer)
        except redis.RedisError:
            self._joined = False
        self._client.close()

    def _unanswered(self) -> int:
        return len(self._client.xpending_range(self._stream, self._group, "-", "+", 1, consumername=self.consumer))

    @contextmanager
    def _joining(self) -> Generator[None]:
        """A Redis that came back empty knows no group: it is made anew, and reads the stream from its beginning."""
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
        self._forget_the_gone()

    def _forget_the_gone(self) -> None:
        """Every process reads under a name of its own, and one that is killed leaves it behind."""
        for one in self._client.xinfo_consumers(self._stream, self._group):
            if one["pending"] == 0 and one["idle"] > FORGOTTEN_AFTER_MS:
                self._client.xgroup_delconsumer(self._stream, self._group, one["name"])


def _messages(entries: list[tuple[bytes | None, dict[bytes, bytes]]]) -> list[StreamEntry]:
    return [StreamEntry(id_.decode(), fields.get(FIELD, b"")) for id_, fields in entries if id_ is not None]


def _connect(redis_url: str, timeout_s: float) -> Any:
    # One try: a message that is put on a stream again is there twice. Bytes, because others may write anything.
    return cast(Any, redis.Redis).from_url(
        redis_url,
        socket_timeout=timeout_s,
        socket_connect_timeout=CALL_S / 2,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
    )


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except redis.RedisError as error:
        raise RedisUnavailable("Redis does not answer.") from error
