"""Callers who want to stop the API, as a process of its own: `hostile_callers KIND NUMBER PORT`.

Those who are cut off come back at once. They call from three addresses of loopback, none of which is the victim's.
"""

import contextlib
import itertools
import selectors
import socket
import sys
import time

from benchmarks.client import Answer, open_connections, run_clients

PRESS = b"POST /tasks HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
SENT = {
    "headers": b"POST /tasks HTTP/1.1\r\nHost: bench\r\n",
    "bodies": PRESS + b"Content-Length: 100\r\n\r\n{",
    "readers": b"GET /openapi.json HTTP/1.1\r\nHost: bench\r\n\r\n" * 12,
}
SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: bench\r\n\r\n"
AT_MOST_S = 300


def main() -> None:
    kind, number, port = sys.argv[1:]
    if kind == "scrapers":
        scrape(int(port), int(number))
    else:
        be_slow(int(port), int(number), SENT[kind])


def scrape(port: int, number: int) -> None:
    ends = time.monotonic() + AT_MOST_S

    def on_answer(_answer: Answer) -> float:
        return 0.0

    with open_connections(port, number) as opened:
        print("ready", flush=True)
        run_clients(opened, lambda: SCRAPE if time.monotonic() < ends else None, on_answer, patience_s=AT_MOST_S)


def be_slow(port: int, number: int, sent: bytes) -> None:
    ends, hosts = time.monotonic() + AT_MOST_S, itertools.cycle((2, 3, 4))
    with selectors.DefaultSelector() as selector:
        missing, said = number, False
        while time.monotonic() < ends:
            while missing and (connection := _call(port, f"127.0.0.{next(hosts)}", sent)):
                selector.register(connection, selectors.EVENT_READ)
                missing -= 1
            if not said and not missing:
                said = True
                print("ready", flush=True)
            # Those who do not read learn of their end all the same: an end is an event without bytes, or an error.
            for key, _ in selector.select(0.1):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                if _is_over(connection):
                    selector.unregister(connection)
                    connection.close()
                    missing += 1
            time.sleep(0.01)


def _call(port: int, host: str, sent: bytes) -> socket.socket | None:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(1)
    try:
        connection.bind((host, 0))
        connection.connect(("127.0.0.1", port))
        connection.sendall(sent)
    except OSError:
        connection.close()
        return None
    connection.setblocking(False)
    return connection


def _is_over(connection: socket.socket) -> bool:
    with contextlib.suppress(OSError):
        return not connection.recv(1, socket.MSG_PEEK)
    return True


if __name__ == "__main__":
    main()
