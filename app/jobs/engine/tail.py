"""The end of what a task prints."""

KEPT_BYTES = 64 * 1024


class Tail:
    """Keeps the last 64 KB, however much is written."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def write(self, written: bytes) -> None:
        self._kept += written[-KEPT_BYTES:]
        # Trimmed at twice the size, because each trim copies what is kept.
        if len(self._kept) > 2 * KEPT_BYTES:
            del self._kept[:-KEPT_BYTES]

    def text(self) -> str:
        """Whatever bytes a script prints: a letter that was cut in two, or is none, becomes a question mark."""
        return self._kept[-KEPT_BYTES:].decode("utf-8", "replace")

    def clear(self) -> None:
        self._kept.clear()
