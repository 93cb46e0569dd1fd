"""The progress of a job on stderr: a bar on a terminal, lines elsewhere."""

import shutil
import sys
import time
from typing import TextIO

from app.jobs.contract import JobProgress

WIDTH = 30
LINE_EVERY_S = 1.0


class ProgressLines:
    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._shown: JobProgress | None = None
        self._next_at = 0.0

    def show(self, progress: JobProgress | None) -> None:
        if progress is None or progress == self._shown:
            return
        if self._is_terminal:
            columns = shutil.get_terminal_size().columns
            self._write(f"\r\x1b[K{bar(progress)}"[: columns + 3])
        elif time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + LINE_EVERY_S
            self._write(f"{line(progress)}\n")
        else:
            return
        self._shown = progress

    def end(self, progress: JobProgress | None) -> None:
        """Shows the last progress, and leaves the line of the bar."""
        self._next_at = 0.0
        self.show(progress)
        if self._is_terminal and self._shown is not None:
            self._write("\n")

    def _write(self, words: str) -> None:
        self._stream.write(words)
        self._stream.flush()


def bar(progress: JobProgress) -> str:
    if not progress.total:
        return line(progress)
    share = min(progress.done / progress.total, 1.0)
    full = int(share * WIDTH)
    return f"[{'#' * full}{'.' * (WIDTH - full)}] {share:4.0%} {line(progress)}"


def line(progress: JobProgress) -> str:
    of_total = f"/{progress.total}" if progress.total is not None else ""
    # One line, whatever the script writes.
    note = "".join(letter if letter.isprintable() else " " for letter in progress.note)
    return f"{progress.done}{of_total} {note}".rstrip()
