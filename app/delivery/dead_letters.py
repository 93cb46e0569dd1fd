"""What was given up, and why."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.delivery.reasons import explain
from app.ids import uuid7


@dataclass(frozen=True)
class DeadLetter:
    channel_type: str
    error_code: str
    retryable: bool
    retry_count: int = 0
    notification_id: UUID | None = None
    action_id: UUID | None = None
    step_order: int | None = None


_WRITE = text(
    """
    INSERT INTO dead_letters (id, notification_id, action_id, action_plan_id, step_order, channel_type, error_code,
                              error_message, retryable, retry_count)
    SELECT row.id, row.notification_id, row.action_id, a.action_plan_id, row.step_order, row.channel_type,
           row.error_code, row.error_message, row.retryable, row.retry_count
      FROM json_to_recordset(CAST(:rows AS json)) AS row(
           id uuid, notification_id uuid, action_id uuid, step_order int, channel_type text, error_code text,
           error_message text, retryable boolean, retry_count int)
      LEFT JOIN actions a ON a.id = row.action_id
    """
)


def write(conn: Connection, letters: Sequence[DeadLetter]) -> None:
    if letters:
        conn.execute(_WRITE, {"rows": json.dumps([_row(letter) for letter in letters])})


def _row(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": str(uuid7()),
        "notification_id": str(letter.notification_id) if letter.notification_id else None,
        "action_id": str(letter.action_id) if letter.action_id else None,
        "step_order": letter.step_order,
        "channel_type": letter.channel_type,
        "error_code": letter.error_code,
        "error_message": explain(letter.error_code),
        "retryable": letter.retryable,
        "retry_count": letter.retry_count,
    }
