"""Consumers and their tokens. Only the hash of a token is kept: with 256 random bits it needs no salt and no slow
hash."""

import hashlib
import secrets
from typing import Any

from sqlalchemy import Connection, text

from app.foundation.errors import InvalidValue
from app.foundation.pages import Page, page_of, parse_number
from app.roster.feed.feed_values import Consumer, ConsumerNotFound, NewConsumer
from app.roster.kinds.known_kinds import known_kinds
from app.roster.sync.models import ConsumerScope

TOKEN_PREFIX = "yr_"
"""Tells these tokens from those of users, and lets scanners of secrets find one in a repository."""

_COLUMNS = "id, document_type, name, scope, created_at, used_at, revoked_at"
_CREATE = text(
    f"""
    INSERT INTO roster_consumers (document_type, name, token_hash, scope, created_by)
    VALUES (:document_type, :name, :token_hash, :scope, :created_by) RETURNING {_COLUMNS}
    """
)
_FIND = text(
    f"""
    SELECT {_COLUMNS}, coalesce(used_at < clock_timestamp() - interval '1 minute', true) AS is_stale
      FROM roster_consumers WHERE token_hash = :token_hash AND revoked_at IS NULL
    """
)
_NOTE_USE = text("UPDATE roster_consumers SET used_at = clock_timestamp() WHERE id = :id")
_LIST = text(
    f"""
    SELECT {_COLUMNS} FROM roster_consumers WHERE (id < CAST(:before AS bigint)) IS NOT FALSE
     ORDER BY id DESC LIMIT :limit
    """
)
_REVOKE = text("UPDATE roster_consumers SET revoked_at = clock_timestamp() WHERE id = :id AND revoked_at IS NULL")
_EXISTS = text("SELECT EXISTS (SELECT FROM roster_consumers WHERE id = :id)")


def create_consumer(conn: Connection, kind: str, name: str, scope: ConsumerScope, by: int) -> NewConsumer:
    declared = known_kinds().get(kind)
    if declared is None:
        raise InvalidValue("kind", "is not the name of a kind")
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    values = {
        "document_type": declared.document_type,
        "name": name,
        "token_hash": _hash(token),
        "scope": scope,
        "created_by": by,
    }
    return NewConsumer(_consumer(conn.execute(_CREATE, values).one()), token)


def find_consumer(conn: Connection, token: str) -> Consumer | None:
    """None if the token is unknown or revoked. `conn` must commit, because the use is noted."""
    row = conn.execute(_FIND, {"token_hash": _hash(token)}).one_or_none()
    if row is None:
        return None
    if row.is_stale:
        conn.execute(_NOTE_USE, {"id": row.id})
    return _consumer(row)


def list_consumers(conn: Connection, *, cursor: str | None = None, limit: int = 50) -> Page[Consumer]:
    """Newest first, with the revoked ones."""
    before = None if cursor is None else parse_number(cursor)
    return page_of(conn.execute(_LIST, {"before": before, "limit": limit + 1}).all(), limit, _consumer)


def revoke_consumer(conn: Connection, id_: int) -> None:
    """A repeat is harmless."""
    is_revoked = conn.execute(_REVOKE, {"id": id_}).rowcount == 1
    if not is_revoked and not conn.execute(_EXISTS, {"id": id_}).scalar_one():
        raise ConsumerNotFound("There is no consumer with this id.")


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _consumer(row: Any) -> Consumer:
    names = {kind.document_type: kind.name for kind in known_kinds().values()}
    return Consumer(
        row.id,
        names.get(row.document_type, f"({row.document_type})"),
        row.name,
        ConsumerScope(row.scope),
        row.created_at,
        row.used_at,
        row.revoked_at,
    )
