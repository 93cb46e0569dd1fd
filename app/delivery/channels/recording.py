"""Stands in for Firebase where there are no phones: it keeps what each of them would show."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from app.db import Database
from app.delivery.channels.base import Parcel
from app.delivery.models import Outcome
from app.delivery.retry import PUSH_POLICY, Result, RetryPolicy

# What a phone already shows, it shows once, as one that gets the same message id twice.
_RECORD = text(
    """
    INSERT INTO recorded_pushes (notification_id, user_id, device_id, title, body, data)
    SELECT notification_id, user_id, device_id, title, body, data
      FROM json_to_recordset(CAST(:rows AS json)) AS row(
           notification_id uuid, user_id bigint, device_id text, title text, body text, data jsonb)
        ON CONFLICT (notification_id, device_id) DO NOTHING
    """
)


class RecordingChannel:
    def __init__(self, db: Database, *, policy: RetryPolicy = PUSH_POLICY, batch_size: int = 50) -> None:
        self.policy = policy
        self.batch_size = batch_size
        self.needs_device = False
        self._db = db

    def send(self, parcels: Sequence[Parcel]) -> list[Result]:
        rows = json.dumps([_row(parcel) for parcel in parcels], ensure_ascii=False)
        with self._db.transaction() as conn:
            conn.execute(_RECORD, {"rows": rows})
        return [Result(Outcome.SENT, provider_message_id=f"recorded:{parcel.notification_id}") for parcel in parcels]

    def close(self) -> None:
        """The database belongs to whoever made this channel."""


def _row(parcel: Parcel) -> dict[str, Any]:
    return {
        "notification_id": str(parcel.notification_id),
        "user_id": parcel.user_id,
        "device_id": parcel.device.device_id if parcel.device else None,
        "title": parcel.title or None,
        "body": parcel.body or None,
        "data": parcel.data,
    }
