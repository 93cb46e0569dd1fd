"""Cursors: all changes after a position.

A cursor also names the run that made the position. Positions of a database that was restored from a backup are given
out again, to other changes; the run tells them apart.
"""

import base64
import binascii
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from struct import Struct
from struct import error as StructError

from app.foundation.errors import InvalidValue

_PLACE = Struct(">qq")
_SIGNATURE_BYTES = 14
"""Together with the place 30 bytes, whose base64 has no padding."""


@dataclass(frozen=True)
class FeedPlace:
    position: int
    changed_at: datetime
    """Of a run that ended at this position or made it. In whole seconds."""


def cursor_of(key: bytes, place: FeedPlace) -> str:
    content = _PLACE.pack(place.position, int(place.changed_at.timestamp()))
    signature = hmac.digest(key, content, "sha256")[:_SIGNATURE_BYTES]
    return base64.urlsafe_b64encode(content + signature).decode()


def place_of(key: bytes, cursor: str) -> FeedPlace:
    """Raises `InvalidValue` for a cursor that was not made with this key."""
    try:
        position, seconds = _PLACE.unpack_from(base64.urlsafe_b64decode(cursor))
        place = FeedPlace(position, datetime.fromtimestamp(seconds, UTC))
    except (binascii.Error, ValueError, OverflowError, OSError, StructError):
        raise _unknown() from None
    if not hmac.compare_digest(cursor_of(key, place), cursor):
        raise _unknown()
    return place


def _unknown() -> InvalidValue:
    return InvalidValue("cursor", "is not a cursor that this list has given out")
