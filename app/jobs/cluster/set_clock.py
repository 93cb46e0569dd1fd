"""Dask plans by the wall clock. If that is set back by an hour, heartbeats, leases and messages wait for an hour."""

import asyncio
import time
from typing import Any

import structlog

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 0.5
_SMALLEST_STEP_S = 0.2


async def start_again_when_clock_is_set_back(server: Any) -> None:
    """For a scheduler or a worker of dask, until it is cancelled."""
    ahead = _ahead()
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        before, ahead = ahead, _ahead()
        if ahead < before - _SMALLEST_STEP_S:
            log.warning("clock_was_set_back", seconds=round(before - ahead, 1))
            _start_again(server)


def _ahead() -> float:
    return time.time() - time.monotonic()


def _start_again(server: Any) -> None:
    for callback in server.periodic_callbacks.values():
        if callback.is_running():
            callback.stop()
            callback.start()
    for stream in _streams(server):
        # It had a time until which it collects messages.
        stream.next_deadline = None
        stream.waker.set()


def _streams(server: Any) -> list[Any]:
    if hasattr(server, "batched_stream"):
        return [server.batched_stream]
    return [*server.stream_comms.values(), *server.client_comms.values()]
