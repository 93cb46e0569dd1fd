"""Identifiers that sort by the time they were made: UUID version 7 (RFC 9562)."""

import os
import threading
import time
from datetime import datetime
from uuid import UUID

_lock = threading.Lock()
_last_stamp = 0


def uuid7() -> UUID:
    """Strictly increasing within a process: milliseconds, then 12 bits that hold the fraction of a millisecond and also
    serve as a counter."""
    stamp = _next_stamp()
    tail = int.from_bytes(os.urandom(8), "big") & ((1 << 62) - 1)
    return UUID(int=(stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | tail)


def _next_stamp() -> int:
    """60 bits: 48 of Unix milliseconds and 12 of the fraction of a millisecond. It is the last stamp plus one if the
    clock has not advanced."""
    global _last_stamp
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    stamp = milliseconds << 12 | (nanoseconds << 12) // 1_000_000
    with _lock:
        _last_stamp = max(stamp, _last_stamp + 1)
        return _last_stamp


def earliest_id(moment: datetime) -> UUID:
    """The smallest id that can be made at this moment or later."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)
