"""Accepts connections so that each process of the role has about as many as the others.

The processes share a listening socket. Without turns, the first to wake up takes all connections that wait, often those
of all callers, and its threads wait for each other's interpreter lock while the other processes are idle.
"""

import asyncio
import mmap
import socket
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)

AT_ONCE = 100
"""Connections that are accepted before requests are looked at again."""
OTHERS_FIRST_S = 0.005
"""Time for a process with fewer connections to accept. One that is busy or gone holds up callers for no longer."""
AFTER_ERROR_S = 1.0
"""No more files can be open, as a rule. Until some are closed, there is nothing to do."""


class OpenConnections:
    """How many each process has, in memory that all of them share. Made before the fork."""

    def __init__(self, processes: int = 1) -> None:
        self._counts = memoryview(mmap.mmap(-1, 8 * processes)).cast("q")

    def of_process(self, index: int) -> "ConnectionShare":
        return ConnectionShare(self._counts, index)


class ConnectionShare:
    """Those of one process. Only this process writes its count."""

    def __init__(self, counts: "memoryview[int]", index: int) -> None:
        self._counts = counts
        self._index = index

    @property
    def count(self) -> int:
        return self._counts[self._index]

    @count.setter
    def count(self, value: int) -> None:
        self._counts[self._index] = value

    @property
    def is_low(self) -> bool:
        """A small lead is no reason to wait."""
        fewest = min(self._counts)
        return self.count <= fewest + fewest // 8


class Acceptor:
    """For the event loop that runs when it starts."""

    def __init__(
        self, listener: socket.socket, share: ConnectionShare, make_connection: Callable[[], asyncio.Protocol]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._share = share
        self._make_connection = make_connection
        self._arriving: set[asyncio.Task[object]] = set()
        self._paused: asyncio.TimerHandle | None = None
        self._takes_turns = True
        # A process that was killed has left its count.
        share.count = 0
        self._watch()

    def accept_all(self) -> None:
        """Without waiting for others, because the process stops."""
        self._takes_turns = False
        self.accept()

    def close(self) -> None:
        self._loop.remove_reader(self._listener)
        if self._paused is not None:
            self._paused.cancel()

    def accept(self, out_of_turn: int = 0) -> None:
        try:
            for number in range(AT_ONCE):
                if number >= out_of_turn and self._takes_turns and not self._share.is_low:
                    self._pause(OTHERS_FIRST_S)
                    return
                self._take(self._listener.accept()[0])
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            """Nobody waits any more."""
        except OSError as error:
            log.error("accepting_failed", error_type=type(error).__name__, errno=error.errno)
            self._pause(AFTER_ERROR_S)
            return
        self._watch()

    def _take(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        self._share.count += 1
        arrival = self._loop.create_task(self._loop.connect_accepted_socket(self._make_connection, accepted))
        self._arriving.add(arrival)
        arrival.add_done_callback(self._arriving.discard)

    def _watch(self) -> None:
        self._loop.add_reader(self._listener, self.accept)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._paused = self._loop.call_later(seconds, self.accept, 1 + self._share.count // 8)
