"""Signs the head of the audit trail: its last entry, which covers all entries before it.

A head is a file in a folder of its own, better on another machine. Whoever can write to the database, but has not the
key, cannot rewrite or cut off what a head covers. A head is named for its entry and not for a time, so a clock that is
wrong does no harm, and several delivery processes write the same files.
"""

import hashlib
import hmac
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog
from sqlalchemy import text

from app.db.database import Database
from app.foundation.clock import rfc3339
from app.foundation.durable import sync_folder
from app.foundation.logs import describe_error
from app.foundation.loop import run_loop

log = structlog.get_logger(__name__)

EVERY_S = 3600.0
AGAIN_S = 60.0
FILES = "[0-9]*.json"

_LAST = text(
    "SELECT id, hash, clock_timestamp() AS now, (SELECT hash FROM audit_entries WHERE id = :signed) AS signed_hash"
    " FROM audit_entries ORDER BY id DESC LIMIT 1"
)


@dataclass(frozen=True)
class Head:
    entry: int
    hash: str
    at: str
    signature: str

    @property
    def name(self) -> str:
        return f"{self.entry:020d}.json"


@dataclass(frozen=True)
class KnownHeads:
    heads: tuple[Head, ...]
    """In the order of their entries."""
    forged: tuple[str, ...]
    """Names of files that no known key has signed."""


def signed(key: str, entry: int, hash_: bytes, at: str) -> Head:
    return Head(entry, hash_.hex(), at, _signature(key, entry, hash_.hex(), at))


def _signature(key: str, entry: int, hash_: str, at: str) -> str:
    return hmac.new(key.encode(), json.dumps([entry, hash_, at]).encode(), hashlib.sha256).hexdigest()


def read_heads(folder: Path, keys: Sequence[str]) -> KnownHeads:
    heads: list[Head] = []
    forged: list[str] = []
    for path in sorted(folder.glob(FILES)):
        head = _read(path)
        if head is None or not _is_signed(head, keys):
            forged.append(path.name)
        else:
            heads.append(head)
    return KnownHeads(tuple(heads), tuple(forged))


def _read(path: Path) -> Head | None:
    try:
        head = Head(**json.loads(path.read_text()))
        return head if path.name == head.name else None
    except (OSError, ValueError, TypeError):
        return None


def _is_signed(head: Head, keys: Sequence[str]) -> bool:
    # The file may hold any value and any characters.
    given = str(head.signature).encode(errors="replace")
    return any(hmac.compare_digest(given, _signature(key, head.entry, head.hash, head.at).encode()) for key in keys)


class AuditHeads:
    """Writes a head each hour and when the role ends."""

    def __init__(self, db: Database, keys: Sequence[str], folder: str | None) -> None:
        """The first key signs, and all of them are known. Without a folder no head is written."""
        self._db = db
        self._keys = keys
        self._folder = Path(folder) if folder else None

    def run(self, stop: threading.Event) -> None:
        if self._folder is None:
            return
        folder = self._folder
        run_loop("audit_heads", lambda: self.write(folder), stop, first_pause_s=AGAIN_S, longest_pause_s=AGAIN_S)
        try:
            self.write(folder)
        except Exception as error:
            log.error("audit_head_not_written", **describe_error(error))

    def write(self, folder: Path) -> float:
        """Returns after how many seconds to write the next one. Raises `OSError` if the folder cannot be written."""
        folder.mkdir(parents=True, exist_ok=True)
        signed_before = self._newest(folder)
        with self._db.reading() as conn:
            last = conn.execute(_LAST, {"signed": signed_before and signed_before.entry}).one_or_none()
        if signed_before and (last is None or not last.signed_hash or last.signed_hash.hex() != signed_before.hash):
            # Signing what is left would make a trail that was cut off look whole.
            log.critical("audit_trail_misses_its_head", entry_id=signed_before.entry, hint="run `audit verify`")
        elif last and (signed_before is None or last.id > signed_before.entry):
            _write(folder, signed(self._keys[0], last.id, last.hash, rfc3339(last.now)))
            log.info("audit_head_written", entry_id=last.id)
        return EVERY_S

    def _newest(self, folder: Path) -> Head | None:
        """A file that no known key has signed is left to `audit verify`, so that it does not stop the signing."""
        for path in sorted(folder.glob(FILES), reverse=True):
            head = _read(path)
            if head is not None and _is_signed(head, self._keys):
                return head
        return None


def _write(folder: Path, head: Head) -> None:
    unfinished = folder / f".{head.name}.{os.getpid()}"
    try:
        with unfinished.open("w") as file:
            json.dump(asdict(head), file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder / head.name)
    finally:
        unfinished.unlink(missing_ok=True)
    sync_folder(folder)
