"""Counts the round trips between the api and a store, whatever its driver does, with a proxy between them."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

PART = 65_536


@dataclass
class CountedTrips:
    port: int
    round_trips: int = 0
    """How often a client sent something after an answer."""


@contextmanager
def counted(port: int) -> Iterator[CountedTrips]:
    """A port that leads to `port`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = CountedTrips(listener.getsockname()[1])
        threading.Thread(target=_accept, args=(listener, port, found), daemon=True).start()
        try:
            yield found
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, port: int, found: CountedTrips) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            store = socket.create_connection(("127.0.0.1", port))
            turns = Turns(found)
            for source, target, turn in ((client, store, turns.asks), (store, client, turns.answers)):
                threading.Thread(target=_forward, args=(source, target, turn), daemon=True).start()


class Turns:
    """Of one connection."""

    def __init__(self, found: CountedTrips) -> None:
        self._found, self._answered = found, True

    def asks(self) -> None:
        if self._answered:
            self._answered = False
            self._found.round_trips += 1

    def answers(self) -> None:
        self._answered = True


def _forward(source: socket.socket, target: socket.socket, turn: Callable[[], None]) -> None:
    target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(OSError):
        while part := source.recv(PART):
            turn()
            target.sendall(part)
    for one in (source, target):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
