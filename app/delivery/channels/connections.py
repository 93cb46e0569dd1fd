"""A network backend for httpcore that ends every request in time and connects only to addresses that were checked.

The timeout of a socket starts anew with every byte, and the system's resolver has no timeout. A receiver that sends its
headers byte by byte, or a name server that does not answer, would hold a thread for hours. So `timeout` is a time of
the monotonic clock here, not a duration: httpcore passes it from the request to this backend unchanged, and every
operation may take the time that is left until then.
"""

import ssl
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore

from app.delivery.channels.public_addresses import Resolver

Check = Callable[[list[str]], None]

# httpcore's stream renews its timeout for each `send` of the socket, so each write has to fit one `send`.
_PIECE_BYTES = 4096


class TimedBackend(httpcore.NetworkBackend):
    def __init__(self, resolver: Resolver | None = None, check: Check | None = None) -> None:
        """`check` gets all addresses of a host before the connection, and raises an error to refuse them. The caller of
        the request gets that error, unless it is one of httpcore's own."""
        self._resolver = resolver or Resolver()
        self._check = check
        self._tcp = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Divides the time between the addresses, so that an address that does not answer leaves time for the next."""
        addresses = self._look_up(host.strip("[]"), timeout)
        if self._check is not None:
            self._check(addresses)
        last: Exception = httpcore.ConnectError()
        for number, address in enumerate(addresses):
            share_s = _left_s(timeout, httpcore.ConnectTimeout) / (len(addresses) - number)
            try:
                return TimedStream(self._tcp.connect_tcp(address, port, share_s, local_address, socket_options or ()))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
        raise last

    def _look_up(self, host: str, until: float | None) -> list[str]:
        try:
            return self._resolver.addresses(host, _left_s(until, httpcore.ConnectTimeout))
        except TimeoutError as error:
            raise httpcore.ConnectTimeout from error
        except OSError as error:
            raise httpcore.ConnectError from error


class TimedStream(httpcore.NetworkStream):
    """Wraps a stream. Timeouts are times of the monotonic clock."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE_BYTES):
            self._stream.write(buffer[start : start + _PIECE_BYTES], _left_s(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        name = server_hostname and server_hostname.strip("[]")
        return TimedStream(self._stream.start_tls(ssl_context, name, _left_s(timeout, httpcore.ConnectTimeout)))

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left_s(until: float | None, error: type[httpcore.TimeoutException]) -> float:
    assert until is not None, "every request is made with timeouts"
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise error
    return left_s
