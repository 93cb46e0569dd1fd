"""The intake: reads the requests for actions that other services put on a Redis stream, and creates or refuses each
action once.

An entry of the stream is acknowledged (XACK) only after its action is committed. If a consumer dies before that,
another one claims the entry and finds the action by its evaluation key, or the refusal by its dead letter.
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
from app.foundation.errors import AppError, InvalidValue, Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.foundation.loop import run_loop
from app.redis_store.streams import Inlet, StreamEntry

log = structlog.get_logger(__name__)

GROUP = "action-executor"
MOST_AT_ONCE = 100
BLOCK_S = 1.0
"""The longest wait for new entries, and so the longest delay of a stop."""
IDLE_S = 30.0
CLAIM_EVERY_S = 5.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
CHANNEL_TYPE = "action"
"""The channel type of a dead letter for a whole request, which has no step."""

Request = Callable[[Connection, Sequence[NewAction]], object]


@dataclass(frozen=True)
class RefusedRequest:
    entry: StreamEntry
    error_code: str
    action_plan_id: int | None
    context: dict[str, Any]
    detail: str = ""

    @property
    def id(self) -> UUID:
        """The id of the dead letter. It is derived from the entry, so a repeated entry gets the same id, and like all
        ids it sorts by time."""
        milliseconds, _, number = self.entry.id.partition("-")
        digest = hashlib.sha256(f"{self.entry.id} ".encode() + self.entry.payload).digest()
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
        self._claim_at = 0.0
        self._unacknowledged: list[StreamEntry] = []

    def run_once(self) -> int:
        """Reads one batch and writes its actions; returns its size. After a failure, the next call tries the same
        batch."""
        entries = self._unacknowledged = self._unacknowledged or self._next()
        if entries:
            self._write_batch(entries)
            failpoint("intake.committed")
            self._inlet.answer(entries)
            self._unacknowledged = []
        return len(entries)

    def run(self, stop: threading.Event) -> None:
        run_loop("intake", self._turn, stop, first_pause_s=FIRST_PAUSE_S, longest_pause_s=LONGEST_PAUSE_S)

    def _turn(self) -> float:
        """No sleep between two turns, because reading waits for new entries."""
        self.run_once()
        return 0.0

    def close(self) -> None:
        self._inlet.close()

    def _next(self) -> list[StreamEntry]:
        """First the entries that a dead consumer left, then new ones."""
        if time.monotonic() >= self._claim_at:
            left_behind = self._inlet.claim(MOST_AT_ONCE, self._idle_s)
            if left_behind:
                log.info("intake_claims", count=len(left_behind))
                return left_behind
            self._claim_at = time.monotonic() + min(CLAIM_EVERY_S, self._idle_s)
        return self._inlet.read(MOST_AT_ONCE)

    def _write_batch(self, entries: Sequence[StreamEntry]) -> None:
        requests = [_read(entry) for entry in entries]
        try:
            self._write(requests)
        except Unavailable:
            raise
        except Exception:
            # One of the requests fails. A transaction for each keeps it from failing the others.
            for entry, request in zip(entries, requests, strict=True):
                self._write_alone(entry, request)

    def _write_alone(self, entry: StreamEntry, request: NewAction | RefusedRequest) -> None:
        try:
            self._write([request])
        except Unavailable:
            raise
        except Exception as error:
            if isinstance(request, RefusedRequest):
                raise
            self._write([_refused(entry, request, error)])

    def _write(self, requests: Sequence[NewAction | RefusedRequest]) -> None:
        with self._db.transaction() as conn:
            new = [request for request in requests if isinstance(request, NewAction)]
            if new:
                self._request(conn, new)
            refuse(conn, [request for request in requests if isinstance(request, RefusedRequest)])


def _read(entry: StreamEntry) -> NewAction | RefusedRequest:
    try:
        return read(entry.payload)
    except Unreadable as error:
        return RefusedRequest(entry, "INVALID_REQUEST", error.action_plan_id, error.context, error.problem)


def _refused(entry: StreamEntry, new: NewAction, error: Exception) -> RefusedRequest:
    plan_id = new.plan if isinstance(new.plan, int) else None
    if isinstance(error, InvalidValue):
        problems = "; ".join(f"{field} {problem}" for field, problem in error.problems.items())
        return RefusedRequest(entry, "INVALID_REQUEST", plan_id, new.context, f"{problems}.")
    if isinstance(error, AppError):
        return RefusedRequest(entry, error.code.upper(), plan_id, new.context)
    log.error("intake_refuses", message_id=entry.id, **describe_error(error))
    return RefusedRequest(entry, "REQUEST_FAILED", plan_id, new.context)


def refuse(conn: Connection, refused: Sequence[RefusedRequest]) -> None:
    """Writes a dead letter for each request, and an event for each one that was not refused before."""
    written = dead_letters.write(conn, [_dead_letter(request) for request in refused])
    if written:
        now = conn.execute(text("SELECT clock_timestamp()")).scalar_one()
        outbox.put(conn, [_failed(request, now) for request in refused if request.id in written])


def _dead_letter(request: RefusedRequest) -> NewDeadLetter:
    return NewDeadLetter(
        channel_type=CHANNEL_TYPE,
        error_code=request.error_code,
        retryable=False,
        id=request.id,
        action_plan_id=request.action_plan_id,
        context=request.context,
        detail=request.detail,
    )


def _failed(request: RefusedRequest, now: datetime) -> outbox.Event:
    return result_format.failed(
        result_format.StepResult(request.action_plan_id, None, CHANNEL_TYPE, request.context),
        produced_at=now,
        process_ms=_process_ms(request.entry, now),
        error_code=request.error_code,
        error_message=_dead_letter(request).error_message,
        retryable=False,
        failed_at=now,
    )


def _process_ms(entry: StreamEntry, now: datetime) -> int:
    """The time since the entry was put on the stream. That time is by Redis's clock, which may differ from the
    database's."""
    try:
        put_at = datetime.fromtimestamp(int(entry.id.partition("-")[0]) / 1000, UTC)
        return max(0, int((now - put_at).total_seconds() * 1000))
    except (ValueError, OverflowError, OSError):
        return 0
