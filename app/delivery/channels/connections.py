"""Connections whose requests end in time, whatever the other side does, and that go only where they may.

A timeout of a socket starts anew with every byte, and the system's resolver has none: a receiver that trickles its
headers, or a name server that says nothing, would hold a thread for hours. Here every step gets what is left of the
time for the whole.
"""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util.connection import create_connection

from app.delivery.channels.public_addresses import Resolver

Check = Callable[[list[str]], None]

# When the request that this thread makes has to be over, by the monotonic clock.
_over_at: ContextVar[float | None] = ContextVar("over_at", default=None)


@contextmanager
def over_within(seconds: float) -> Generator[None]:
    """Nothing that a request in this block waits for makes it longer."""
    token = _over_at.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _over_at.reset(token)


def _ends(limit_s: float | None) -> float:
    assert limit_s is not None, "every request is made with timeouts"
    over_at = _over_at.get()
    ends = time.monotonic() + limit_s
    return ends if over_at is None else min(ends, over_at)


def _left_s(ends: float) -> float:
    left_s = ends - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


class _Reads(io.RawIOBase):
    """What a response is read from; no read waits beyond the end."""

    def __init__(self, sock: socket.socket, raw: Any, ends: float) -> None:
        self._sock = sock
        self._raw = raw
        self._ends = ends

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        self._sock.settimeout(_left_s(self._ends))
        return self._raw.readinto(buffer)

    def fileno(self) -> int:
        return self._raw.fileno()

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Reads(sock, self.fp.detach(), _ends(sock.gettimeout())))


@contextmanager
def _after_the_handshake() -> Generator[None]:
    """TLS that breaks here does not mean, as in a handshake, that nothing was taken."""
    try:
        yield
    except ssl.SSLError as error:
        raise ConnectionAbortedError from error


class _Timed(HTTPConnection):
    """The name of the host stays what certificates, SNI and the Host header are about; only where the socket leads to
    is decided here."""

    response_class = _Response
    resolver = Resolver()
    check: Check | None = None

    def _new_conn(self) -> socket.socket:
        ends = _ends(self.timeout)
        try:
            addresses = self.resolver.addresses(self.host.strip("[]"), _left_s(ends))
        except TimeoutError as error:
            raise ConnectTimeoutError(self, "The name was not found in time") from error
        except OSError as error:
            raise NameResolutionError(self.host, self, socket.gaierror(str(error))) from error
        if self.check is not None:
            self.check(addresses)
        return self._connect_to_one(addresses, ends)

    def _connect_to_one(self, addresses: list[str], ends: float) -> socket.socket:
        """Each address gets its share of the time, so that one that swallows packets leaves some to the next."""
        last: Exception = OSError("no address")
        for number, address in enumerate(addresses):
            try:
                share_s = _left_s(ends) / (len(addresses) - number)
                sock = create_connection((address, self.port), share_s, self.source_address, self.socket_options)
                sock.settimeout(_left_s(ends))
                return sock
            except OSError as error:
                last = error
        if isinstance(last, TimeoutError):
            raise ConnectTimeoutError(self, "No address answered in time") from last
        raise NewConnectionError(self, "No address could be connected to") from last

    def request(self, *args: Any, **kwargs: Any) -> None:
        with _after_the_handshake():
            super().request(*args, **kwargs)

    def getresponse(self) -> Any:
        with _after_the_handshake():
            return super().getresponse()


class _TimedTls(_Timed, HTTPSConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except TimeoutError as error:
            raise ConnectTimeoutError(self, "The handshake took too long") from error
        except ConnectionError as error:
            raise NewConnectionError(self, "The handshake was broken off") from error


def _pools(resolver: Resolver, check: Check | None) -> dict[str, type[HTTPConnectionPool]]:
    own: dict[str, Any] = {"resolver": resolver, "check": staticmethod(check) if check else None}

    plain: Any = type("TimedConnection", (_Timed,), own)
    tls: Any = type("TimedTlsConnection", (_TimedTls,), own)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = plain

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = tls

    return {"http": PlainPool, "https": TlsPool}


class TimedAdapter(HTTPAdapter):
    def __init__(self, *, connections: int, resolver: Resolver | None = None, check: Check | None = None) -> None:
        """`check` sees all addresses of a host before one of them is connected to, and raises what it thinks of them;
        it must be no OSError, which would look like a host that is down."""
        self._pools = _pools(resolver or Resolver(), check)
        super().__init__(pool_maxsize=connections, max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = self._pools
        return manager
