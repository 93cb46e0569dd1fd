"""A TCP proxy that can fall silent: connections stay open but carry nothing, as with a frozen machine."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class SilentGate:
    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._flows = threading.Event()
        self._flows.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        self._flows.clear()

    def speak(self) -> None:
        self._flows.set()

    def close(self) -> None:
        self._flows.set()
        for one in [self._listener, *self._sockets]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._sockets += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._flows.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@contextmanager
def silent_gate(host: str, port: int) -> Iterator[SilentGate]:
    gate = SilentGate(host, port)
    try:
        yield gate
    finally:
        gate.close()
