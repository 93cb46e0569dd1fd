"""The messages between the engine and its workers: JSON, with bytes behind it for artifacts.

No pickle: whoever can write to a worker's socket, a script for one, must not be able to run code in the engine.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

_HEADER = struct.Struct("!II")
LARGEST_JSON = 16 * 1024 * 1024
LARGEST_BLOB = 256 * 1024 * 1024


class BrokenFrame(Exception):
    """What came is no frame."""


def pack(message: Mapping[str, Any], blob: bytes = b"") -> bytes:
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    return _HEADER.pack(len(body), len(blob)) + body + blob


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, received: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        self._bytes += received
        while len(self._bytes) >= _HEADER.size:
            json_size, blob_size = _HEADER.unpack_from(self._bytes)
            if json_size > LARGEST_JSON or blob_size > LARGEST_BLOB:
                raise BrokenFrame
            blob_at = _HEADER.size + json_size
            end = blob_at + blob_size
            if len(self._bytes) < end:
                return
            body, blob = bytes(self._bytes[_HEADER.size : blob_at]), bytes(self._bytes[blob_at:end])
            del self._bytes[:end]
            yield _parse(body), blob


def _parse(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError:
        raise BrokenFrame from None
    if not isinstance(message, dict):
        raise BrokenFrame
    return message  # pyright: ignore[reportUnknownVariableType]
