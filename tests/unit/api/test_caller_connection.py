"""The limits that take longer than a test should wait, with a clock and a transport that are played here."""

from collections.abc import Callable
from typing import Any

import pytest
import uvicorn

from app.api.caller_connection import KEEP_ALIVE_S, LINGER_S, READS_WITHIN_S, CallerConnection, ConnectionState


class Timer:
    def __init__(self, seconds: float, ring: Callable[[], None]) -> None:
        self.seconds, self.ring = seconds, ring
        self.is_set = True

    def cancel(self) -> None:
        self.is_set = False


class PlayedLoop:
    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, seconds: float, ring: Callable[[], None]) -> Timer:
        self.timers.append(Timer(seconds, ring))
        return self.timers[-1]

    def time(self) -> float:
        return 0.0

    def create_task(self, coroutine: Any) -> Any:
        coroutine.close()
        return self

    def add_done_callback(self, _callback: Any) -> None: ...

    def pass_by(self, seconds: float) -> None:
        for timer in self.timers:
            if timer.is_set and timer.seconds <= seconds:
                timer.cancel()
                timer.ring()


class PlayedTransport:
    def __init__(self, address: str) -> None:
        self._address = (address, 1)
        self.written = b""
        self.end = ""

    def get_extra_info(self, name: str) -> Any:
        return self._address if name == "peername" else None

    def set_write_buffer_limits(self, high: int) -> None: ...

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return bool(self.end)

    def close(self) -> None:
        self.end = self.end or "closed"

    def abort(self) -> None:
        self.end = "aborted"


class Played:
    def __init__(self, state: ConnectionState | None = None, address: str = "192.0.2.1") -> None:
        self.loop, self.transport = PlayedLoop(), PlayedTransport(address)
        config = uvicorn.Config(lambda: None, interface="asgi3", lifespan="off", ws="none", log_config=None)
        state = state or ConnectionState(2)
        loop: Any = self.loop
        self.connection = CallerConnection(config, state, {}, loop)
        transport: Any = self.transport
        self.connection.connection_made(transport)


def test_callers_who_do_not_read_are_cut_off():
    played = Played()
    played.connection.pause_writing()
    played.loop.pass_by(READS_WITHIN_S - 1)
    played.connection.resume_writing()
    played.loop.pass_by(READS_WITHIN_S)
    assert played.transport.end == ""
    played.connection.pause_writing()
    played.loop.pass_by(READS_WITHIN_S)
    assert played.transport.end == "aborted"


@pytest.mark.parametrize("sent", [b"", b"\r\n\r\n"], ids=["nothing", "empty lines"])
def test_silent_connections_are_closed(sent: bytes):
    played = Played()
    played.connection.data_received(sent)
    played.loop.pass_by(KEEP_ALIVE_S)
    assert (played.transport.end, played.transport.written) == ("closed", b"")


def test_a_process_that_stops_waits_only_briefly_for_silent_connections():
    played = Played()
    played.connection.shutdown()
    assert played.transport.end == ""
    played.loop.pass_by(LINGER_S)
    assert played.transport.end == "closed"


@pytest.mark.parametrize(
    ("addresses", "ends"),
    [
        (["192.0.2.1"] * 3, ["", "", "aborted"]),
        (["192.0.2.1", "192.0.2.1", "192.0.2.2"], ["", "", ""]),
        (["2001:db8::1", "2001:db8::2", "2001:db8::3"], ["", "", "aborted"]),
        (["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"], ["", "", ""]),
    ],
)
def test_an_address_has_so_many_connections(addresses: list[str], ends: list[str]):
    state = ConnectionState(2)
    all_of_them = [Played(state, address) for address in addresses]
    assert [played.transport.end for played in all_of_them] == ends
    for played in all_of_them:
        played.connection.connection_lost(OSError())
    assert state.per_address == {}
