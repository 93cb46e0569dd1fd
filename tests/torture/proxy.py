"""A TCP proxy in front of Redis. Its connections can fall silent without being closed, as when a machine on the way
vanishes, and it can lead to another server, as an address does in a failover."""

import socket
import threading
from contextlib import suppress


class Proxy:
    def __init__(self, target_port: int) -> None:
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._silent: set[int] = set()
        self._open: dict[int, list[socket.socket]] = {}
        self._lock = threading.Lock()
        self._number = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> int:
        """Open connections carry nothing any more, new ones work. Returns how many were silenced."""
        with self._lock:
            self._silent |= self._open.keys()
            return len(self._open)

    def lead_to(self, port: int) -> None:
        """Applies to new connections; open ones stay with the server that they have."""
        self._target = ("127.0.0.1", port)

    def close(self) -> None:
        with self._lock:
            every = [one for pair in self._open.values() for one in pair]
        for one in [self._listener, *every]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target, timeout=2)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._number += 1
                number = self._number
                self._open[number] = [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(number, source, target), daemon=True).start()

    def _forward(self, number: int, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(65536):
                if number not in self._silent:
                    target.sendall(chunk)
        if number in self._silent:
            # Half-open: the other side does not learn that this one has closed.
            return
        with self._lock:
            pair = self._open.pop(number, [])
        for one in pair:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
