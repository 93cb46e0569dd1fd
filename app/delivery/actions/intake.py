"""Takes in what other services ask for by stream, once each, and answers for what cannot be taken.

A message is answered (XACK) only after its action is committed. A consumer that dies before that leaves it to the
others, who find the action there already, by its evaluation key; a message that is refused is known by its letter.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection, text

from app.db import outbox
from app.db.database import Database
from app.delivery.actions import result_format
from app.delivery.actions import service as actions
from app.delivery.actions.request_format import Unreadable, read
from app.delivery.actions.requests import NewAction
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letters import NewDeadLetter
from app.delivery.messages.error_texts import explain
from app.foundation.errors import AppError, InvalidValue, Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.foundation.loop import run_loop
from app.redis_store.streams import Inlet, StreamEntry

log = structlog.get_logger(__name__)

GROUP = "action-executor"
MOST_AT_ONCE = 100
BLOCK_S = 1.0
"""How long it listens at a time; so long it may be deaf to the order to stop."""
IDLE_S = 30.0
LOOK_EVERY_S = 5.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
CHANNEL_TYPE = "action"
"""What a letter says that is about a whole request and none of its steps."""

Request = Callable[[Connection, Sequence[NewAction]], object]


@dataclass(frozen=True)
class RefusedRequest:
    message: StreamEntry
    error_code: str
    action_plan_id: int | None
    context: dict[str, Any]

    @property
    def id(self) -> UUID:
        """The same for the same message, however often it comes, and in the order of time like all of our ids."""
        milliseconds, _, number = self.message.id.partition("-")
        digest = hashlib.sha256(f"{self.message.id} ".encode() + self.message.payload).digest()
        head = (int(milliseconds) & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (int(number or 0) & 0xFFF) << 64
        return UUID(int=head | 0b10 << 62 | int.from_bytes(digest[:8], "big") >> 2)


class Intake:
    def __init__(
        self, db: Database, inlet: Inlet, *, request: Request = actions.request_actions, idle_s: float = IDLE_S
    ) -> None:
        self._db = db
        self._inlet = inlet
        self._request = request
        self._idle_s = idle_s
        self._look_at = 0.0
        self._in_hand: list[StreamEntry] = []

    def run_once(self) -> int:
        """Reads and takes in one batch; says how many messages it held. Where that fails, the next call tries the
        same batch again."""
        messages = self._in_hand = self._in_hand or self._next()
        if messages:
            self._take(messages)
            failpoint("intake.committed")
            self._inlet.answer(messages)
            self._in_hand = []
        return len(messages)

    def run(self, stop: threading.Event) -> None:
        run_loop("intake", self._turn, stop, first_pause_s=FIRST_PAUSE_S, longest_pause_s=LONGEST_PAUSE_S)

    def _turn(self) -> float:
        """Reading waits by itself, so there is no sleep between two turns."""
        self.run_once()
        return 0.0

    def close(self) -> None:
        self._inlet.close()

    def _next(self) -> list[StreamEntry]:
        """What others left behind comes first, and what is new when there is no more of it."""
        if time.monotonic() >= self._look_at:
            left_behind = self._inlet.claim(MOST_AT_ONCE, self._idle_s)
            if left_behind:
                log.info("intake_claims", count=len(left_behind))
                return left_behind
            self._look_at = time.monotonic() + min(LOOK_EVERY_S, self._idle_s)
        return self._inlet.read(MOST_AT_ONCE)

    def _take(self, messages: Sequence[StreamEntry]) -> None:
        readings = [_reading(message) for message in messages]
        try:
            self._write(readings)
        except Unavailable:
            raise
        except Exception:
            # One of them cannot be taken. By itself it hurts none of the others.
            for message, reading in zip(messages, readings, strict=True):
                self._take_alone(message, reading)

    def _take_alone(self, message: StreamEntry, reading: NewAction | RefusedRequest) -> None:
        try:
            self._write([reading])
        except Unavailable:
            raise
        except Exception as error:
            if isinstance(reading, RefusedRequest):
                raise
            self._write([_refused(message, reading, error)])

    def _write(self, readings: Sequence[NewAction | RefusedRequest]) -> None:
        with self._db.transaction() as conn:
            asked = [reading for reading in readings if isinstance(reading, NewAction)]
            if asked:
                self._request(conn, asked)
            refuse(conn, [reading for reading in readings if isinstance(reading, RefusedRequest)])


def _reading(message: StreamEntry) -> NewAction | RefusedRequest:
    try:
        return read(message.payload)
    except Unreadable as error:
        return RefusedRequest(message, "INVALID_REQUEST", error.action_plan_id, error.context)


def _refused(message: StreamEntry, new: NewAction, error: Exception) -> RefusedRequest:
    plan_id = new.plan if isinstance(new.plan, int) else None
    if isinstance(error, InvalidValue):
        return RefusedRequest(message, "INVALID_REQUEST", plan_id, new.context)
    if isinstance(error, AppError):
        return RefusedRequest(message, error.code.upper(), plan_id, new.context)
    log.error("intake_refuses", message_id=message.id, **describe_error(error))
    return RefusedRequest(message, "REQUEST_FAILED", plan_id, new.context)


def refuse(conn: Connection, refused: Sequence[RefusedRequest]) -> None:
    letters = [
        NewDeadLetter(
            channel_type=CHANNEL_TYPE,
            error_code=one.error_code,
            retryable=False,
            id=one.id,
            action_plan_id=one.action_plan_id,
            context=one.context,
        )
        for one in refused
    ]
    new = dead_letters.write(conn, letters)
    if new:
        now = conn.execute(text("SELECT clock_timestamp()")).scalar_one()
        outbox.put(conn, [_failed(one, now) for one in refused if one.id in new])


def _failed(one: RefusedRequest, now: datetime) -> outbox.Event:
    return result_format.failed(
        result_format.StepResult(one.action_plan_id, None, CHANNEL_TYPE, one.context),
        produced_at=now,
        process_ms=_since(one.message, now),
        error_code=one.error_code,
        error_message=explain(one.error_code),
        retryable=False,
        failed_at=now,
    )


def _since(message: StreamEntry, now: datetime) -> int:
    """From when it was put on the stream, as Redis says, which is another clock."""
    try:
        put_at = datetime.fromtimestamp(int(message.id.partition("-")[0]) / 1000, UTC)
        return max(0, int((now - put_at).total_seconds() * 1000))
    except (ValueError, OverflowError, OSError):
        return 0
