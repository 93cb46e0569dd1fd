"""Lists that publishers push. The newest one of each list is kept."""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from app.roster.lists.list_refused import ListRefused, Refusal
from app.roster.lists.reading_rules import ListLimits
from app.roster.lists.stored_list import stored_part

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_CHUNK_BYTES = 256 * 1024


class ReadInPieces(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class KeptList:
    file: Path
    sha256: str
    size: int


def keep_pushed(
    stream: ReadInPieces, folder: Path, source: str, list_name: str, limits: ListLimits, sha256: str | None = None
) -> KeptList:
    """The one before stays until this one is complete, and as it was if this one is refused."""
    target = _file_of(folder, source, list_name)
    with stored_part(iter(partial(stream.read, _CHUNK_BYTES), b""), target.parent, limits) as part:
        if sha256 is not None and sha256.strip().lower() != part.sha256:
            raise ListRefused(
                Refusal.CHECKSUM, "The list does not have the SHA-256 that was sent with it. Send it once more."
            )
        return KeptList(part.move_to(target), part.sha256, part.size)


def find_pushed(folder: Path, source: str, list_name: str) -> Path | None:
    file = _file_of(folder, source, list_name)
    return file if file.is_file() else None


def _file_of(folder: Path, source: str, list_name: str) -> Path:
    if not _NAME.fullmatch(source) or not _NAME.fullmatch(list_name):
        raise ValueError("the name of a source or a list is not one that a file can have")
    return folder / source / f"{list_name}.zip"
