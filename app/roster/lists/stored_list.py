"""Writes a list to disk. A file under its final name is always complete."""

import hashlib
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.foundation.durable import sync_folder
from app.roster.lists.list_archive import check_archive
from app.roster.lists.list_refused import ListRefused, Refusal
from app.roster.lists.reading_rules import ListLimits

_PART = ".part"
_DAY_S = 86_400


@dataclass(frozen=True)
class StoredPart:
    path: Path
    sha256: str
    size: int

    def move_to(self, target: Path) -> Path:
        """Whoever has the old file open keeps it."""
        self.path.replace(target)
        sync_folder(target.parent)
        return target


@contextmanager
def stored_part(chunks: Iterator[bytes], folder: Path, limits: ListLimits) -> Generator[StoredPart]:
    """The part is removed at the end, unless it was moved. It is an archive that could be opened."""
    folder.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(_PART, dir=folder)
    path = Path(name)
    try:
        digest, size = hashlib.sha256(), 0
        with open(number, "wb") as file:  # noqa: PTH123 - a file that is open already
            for chunk in chunks:
                size += len(chunk)
                if size > limits.archive_bytes:
                    raise ListRefused(
                        Refusal.TOO_LARGE, f"The archive is larger than the {limits.archive_bytes:,} bytes allowed."
                    )
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        _remove_old_parts(path)
        check_archive(path, limits)
        yield StoredPart(path, digest.hexdigest(), size)
    finally:
        path.unlink(missing_ok=True)


def _remove_old_parts(own: Path) -> None:
    """What processes that were killed have left."""
    now = own.stat().st_mtime
    for part in own.parent.glob(f"*{_PART}"):
        if now - part.stat().st_mtime > _DAY_S:
            part.unlink(missing_ok=True)
