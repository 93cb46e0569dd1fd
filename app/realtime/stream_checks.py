"""Ends the streams of people who may not read any more: their token has expired or was revoked, or they are not active.

All streams of a process are checked together, a share of them each second, so that none is older than its limit.
"""

import threading
import time
from collections.abc import Callable

from app.foundation.loop import run_loop
from app.realtime.contract import CheckTokens, EndReason
from app.realtime.event_stream import EventStream
from app.realtime.fan_out import FanOut

EVERY_S = 20.0
TURN_S = 1.0
START_WITHIN_S = 10.0
"""A stream whose caller has gone before it began is never read."""


class StreamChecks:
    def __init__(
        self,
        fan_out: FanOut,
        check: CheckTokens,
        close: Callable[[EventStream], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fan_out = fan_out
        self._check = check
        self._close = close
        self._monotonic = monotonic
        self._checked_at: dict[EventStream, float] = {}

    def run(self, stop: threading.Event) -> None:
        run_loop("stream_checks", self.turn, stop)

    def turn(self) -> float:
        now = self._monotonic()
        # New ones were checked when they were opened.
        self._checked_at = {stream: self._checked_at.get(stream, now) for stream in self._fan_out.streams()}
        due = [stream for stream, checked_at in self._checked_at.items() if now - checked_at >= EVERY_S]
        never_begun = [
            stream
            for stream, checked_at in self._checked_at.items()
            if not stream.has_started and now - checked_at >= START_WITHIN_S
        ]
        for stream in never_begun:
            self._close(stream)
        if due:
            for stream, found in zip(due, self._check([stream.token for stream in due]), strict=True):
                if isinstance(found, EndReason):
                    stream.end(found)
                elif found is not None:
                    self._checked_at[stream] = now
                    if found != stream.caller:
                        self._fan_out.change_caller(stream, found)
        return TURN_S
