"""What Redis holds of a person: places on candidate lists, counts of calls, and entries of streams."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from app.redis_store.client import Reach
from app.redis_store.keys import CANDIDATES_PREFIX
from app.redis_store.streams import connect_bytes

AT_ONCE = 500
TIMEOUT_S = 10.0


class Traces:
    """For a command, so it waits longer for Redis than a role may."""

    def __init__(self, redis_url: str, streams: Sequence[str]) -> None:
        self._client = connect_bytes(redis_url, TIMEOUT_S)
        self._streams = streams
        self._reach = Reach()

    def forget(self, user_id: int, words: Sequence[str], *, dry_run: bool = False) -> dict[str, int]:
        """Returns the number of list places, counters and stream entries that were removed, or would be."""
        with self._reach:
            return {
                "redis_candidate_lists": self._forget_lists(user_id, dry_run),
                "redis_limits": self._forget_limits(user_id, dry_run),
                "redis_stream_entries": sum(self._forget_entries(name, words, dry_run) for name in self._streams),
            }

    def _forget_lists(self, user_id: int, dry_run: bool) -> int:
        found = 0
        for key in self._keys(f"{CANDIDATES_PREFIX}*"):
            held = self._client.lpos(key, str(user_id)) is not None
            found += held
            if held and not dry_run:
                self._client.lrem(key, 0, str(user_id))
        return found

    def _forget_limits(self, user_id: int, dry_run: bool) -> int:
        # The library `limits` makes these keys: `limit:LIMITER/<name>/<user id>/<times>/<period>`.
        found = list(self._keys(f"limit*/{user_id}/*"))
        if found and not dry_run:
            self._client.delete(*found)
        return len(found)

    def _forget_entries(self, stream: str, words: Sequence[str], dry_run: bool) -> int:
        if not words:
            return 0
        found = 0
        for entries in self._entries(stream):
            named = [id_ for id_, fields in entries if _names(fields, words)]
            found += len(named)
            if named and not dry_run:
                self._client.xdel(stream, *named)
        return found

    def _entries(self, stream: str) -> Iterator[list[tuple[bytes, dict[bytes, bytes]]]]:
        start = b"-"
        while entries := self._client.xrange(stream, start, "+", count=AT_ONCE):
            yield entries
            start = b"(" + entries[-1][0]

    def _keys(self, pattern: str) -> Iterator[bytes]:
        return self._client.scan_iter(match=pattern, count=AT_ONCE)

    def close(self) -> None:
        self._client.close()


def _names(fields: dict[bytes, bytes], words: Sequence[str]) -> bool:
    """Producers may escape letters in their JSON, so it is read and written again."""
    text = " ".join(_plain(value) for value in fields.values())
    return any(word in text for word in words)


def _plain(value: bytes) -> str:
    text = value.decode("utf-8", "replace")
    try:
        parsed: Any = json.loads(text)
    except ValueError:
        return text
    return json.dumps(parsed, ensure_ascii=False)
