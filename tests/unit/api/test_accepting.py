"""Processes that share a listening socket, here acceptors in one event loop."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ClassVar

import pytest

from app.api.accepting import Acceptor, ConnectionShare, OpenConnections


@pytest.fixture
def listener() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


class Kept(asyncio.Protocol):
    all: ClassVar[list[Any]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.all.append(transport)


def counts_after(
    listener: socket.socket,
    clients: int,
    shares: list[ConnectionShare],
    meanwhile: Callable[[list[Acceptor]], None] = lambda _: None,
) -> list[int]:
    """The number of connections that each acceptor has when all clients are accepted."""

    async def accept_all() -> list[int]:
        acceptors = [Acceptor(stack.enter_context(listener.dup()), share, Kept) for share in shares]
        for _ in range(clients):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        meanwhile(acceptors)
        while sum(share.count for share in shares) < clients:
            await asyncio.sleep(0)
        for acceptor in acceptors:
            acceptor.close()
        # Until the last of them is made, so that it is closed.
        await asyncio.sleep(0.01)
        for connection in Kept.all:
            connection.abort()
        return [share.count for share in shares]

    with ExitStack() as stack:
        return asyncio.run(asyncio.wait_for(accept_all(), 30))


def test_processes_get_equal_shares(listener: socket.socket) -> None:
    connections = OpenConnections(2)
    assert counts_after(listener, 8, [connections.of_process(0), connections.of_process(1)]) == [4, 4]


def test_a_process_that_is_gone_holds_up_nobody(listener: socket.socket) -> None:
    connections = OpenConnections(2)
    connections.of_process(0).count = 5
    assert counts_after(listener, 20, [connections.of_process(0)]) == [20]
    assert not connections.of_process(0).is_low


def test_a_process_that_stops_accepts_who_has_connected(listener: socket.socket) -> None:
    connections = OpenConnections(3)
    shares = [connections.of_process(0), connections.of_process(1)]
    assert counts_after(listener, 8, shares, lambda acceptors: acceptors[1].accept_all()) == [0, 8]


class Failing:
    """A listening socket while no more files can be open."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.tries = 0

    def fileno(self) -> int:
        return self._listener.fileno()

    def accept(self) -> Any:
        self.tries += 1
        raise OSError(24, "Too many open files")


def test_a_process_without_files_waits(listener: socket.socket) -> None:
    failing: Any = Failing(listener)

    async def accept() -> None:
        acceptor = Acceptor(failing, OpenConnections().of_process(0), asyncio.Protocol)
        for _ in range(20):
            await asyncio.sleep(0.001)
        acceptor.close()

    with socket.create_connection(listener.getsockname()):
        asyncio.run(accept())
    assert failing.tries == 1
