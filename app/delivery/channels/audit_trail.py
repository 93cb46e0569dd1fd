"""The audit trail: the hash of each entry covers the entry before it.

Changing, removing or inserting an entry would require new hashes for all later entries. The chain alone does not show
that its last entries were removed, or that somebody has written a whole new one. Signed heads show it, see
`audit_heads.py`.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.database import Database
from app.db.witness import present_witness
from app.delivery.messages.values import Notification

GENESIS = bytes(32)
PAGE = 1000
SERVICE = "service"
"""The author of entries that nobody present has caused, such as those of a plan."""


@dataclass(frozen=True)
class AuditEntry:
    id: int
    notification_id: UUID
    recipient: str = field(repr=False)
    subject: str = field(repr=False)
    body: str = field(repr=False)
    metadata: str = field(repr=False)
    """The JSON text, with exactly the characters that were hashed."""
    written_at: datetime
    previous_hash: bytes
    hash: bytes
    author: str | None
    """None for entries from before there were authors."""


@dataclass(frozen=True)
class Verified:
    count: int
    """The number of entries, from the first one, whose hashes are right."""
    last_hash: bytes
    broken_id: int | None = None
    """The first entry whose hash is wrong."""
    missing: bytes | None = None
    """A hash that was noted earlier and is no longer in the trail."""
    last_id: int | None = None


def link(
    previous_hash: bytes,
    notification_id: UUID,
    recipient: str,
    subject: str,
    body: str,
    metadata: str,
    written_at: datetime,
    author: str | None = None,
) -> bytes:
    """Hashes a JSON list of strings, because no two different entries have the same list. The list of an entry without
    an author is shorter, as it was when they were written."""
    fields = [str(notification_id), recipient, subject, body, metadata, _instant(written_at)]
    if author is not None:
        fields.insert(0, author)
    return hashlib.sha256(previous_hash + json.dumps(fields, separators=(",", ":")).encode()).digest()


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


# A separate statement, so that the next statement sees the commit of the previous holder of the lock.
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('audit_entries', 0))")
_END = text(
    """
    SELECT clock_timestamp() AS now,
           (SELECT hash FROM audit_entries ORDER BY id DESC LIMIT 1) AS last_hash,
           ARRAY(SELECT notification_id FROM audit_entries WHERE notification_id = ANY(:ids)) AS written
    """
)
_APPEND = text(
    """
    INSERT INTO audit_entries
           (author, notification_id, recipient, subject, body, metadata, written_at, previous_hash, hash)
    SELECT :author, notification_id, recipient, subject, body, CAST(metadata AS json), :now,
           decode(previous_hash, 'hex'), decode(hash, 'hex')
      FROM json_to_recordset(CAST(:rows AS json)) AS row(
           place int, notification_id uuid, recipient text, subject text, body text, metadata text, previous_hash text,
           hash text)
     ORDER BY place
    """
)


def append(conn: Connection, notifications: Sequence[Notification], author: str | None = None) -> None:
    """Appends under a lock, one caller at a time, until the caller's transaction ends: make it the last thing that the
    transaction does. A notification that is in the trail already is left out. The author is whoever acts in this
    thread, unless given."""
    if not notifications:
        return
    witness = present_witness()
    author = author or (witness.author if witness else SERVICE)
    conn.execute(_LOCK)
    end = conn.execute(_END, {"ids": [notification.id for notification in notifications]}).one()
    new = {notification.id: notification for notification in notifications if notification.id not in set(end.written)}
    rows = list(_chained(author, list(new.values()), end.last_hash or GENESIS, end.now))
    if rows:
        conn.execute(_APPEND, {"rows": json.dumps(rows), "now": end.now, "author": author})


def _chained(
    author: str, notifications: Sequence[Notification], last_hash: bytes, now: datetime
) -> Iterator[dict[str, Any]]:
    for place, notification in enumerate(notifications):
        metadata = json.dumps(notification.metadata, sort_keys=True, ensure_ascii=False)
        hash_ = link(
            last_hash,
            notification.id,
            notification.recipient,
            notification.subject,
            notification.body,
            metadata,
            now,
            author,
        )
        yield {
            "place": place,
            "notification_id": str(notification.id),
            "recipient": notification.recipient,
            "subject": notification.subject,
            "body": notification.body,
            "metadata": metadata,
            "previous_hash": last_hash.hex(),
            "hash": hash_.hex(),
        }
        last_hash = hash_


ENTRY_COLUMNS = "id, notification_id, recipient, subject, body, metadata::text, written_at, previous_hash, hash, author"
_NEXT_PAGE = text(f"SELECT {ENTRY_COLUMNS} FROM audit_entries WHERE id > :after ORDER BY id LIMIT :limit")


def verify_audit_trail(
    db: Database, known: bytes | None = None, *, page: int = PAGE, note: Callable[[AuditEntry], None] = lambda _: None
) -> Verified:
    """Checks the chain from its first entry. `known` is a hash that has to be in the chain. `note` is told each entry
    whose hash is right."""
    count, last_hash, is_known = 0, GENESIS, known is None
    last_id = None
    for entry in _all(db, page):
        if not _follows(entry, last_hash):
            return Verified(count, last_hash, broken_id=entry.id, last_id=last_id)
        count, last_hash, last_id = count + 1, entry.hash, entry.id
        is_known = is_known or last_hash == known
        note(entry)
    return Verified(count, last_hash, missing=None if is_known else known, last_id=last_id)


def _follows(entry: AuditEntry, last_hash: bytes) -> bool:
    expected = link(
        last_hash,
        entry.notification_id,
        entry.recipient,
        entry.subject,
        entry.body,
        entry.metadata,
        entry.written_at,
        entry.author,
    )
    return (entry.previous_hash, entry.hash) == (last_hash, expected)


def _all(db: Database, page: int) -> Iterator[AuditEntry]:
    """Reads each page in a separate transaction, because reading a trail of years takes longer than a transaction may.
    Ids are assigned under the lock, so no entry can appear later among pages that were read."""
    after = -(2**63)
    while True:
        with db.reading() as conn:
            rows = conn.execute(_NEXT_PAGE, {"after": after, "limit": page}).all()
        if not rows:
            return
        yield from (AuditEntry(*row) for row in rows)
        after = rows[-1].id
