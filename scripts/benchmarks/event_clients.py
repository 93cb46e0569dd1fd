"""Clients that follow events, or that ask for a task every 2 s, in a process of their own.

python -m benchmarks.event_clients streams|polls PORT FILE

FILE has a JSON list of [user id, task id]. At SIGTERM it is replaced by what the clients noted: for streams
[client, id of the event, type, time of its byte], for polls [client, sent, answered, status].
"""

import heapq
import json
import re
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.client import Tokens

EVERY_S = 2.0
BLOCK = re.compile(rb"id: (\d+)\nevent: (\w+)\n")
"""Each piece holds whole blocks, so the lines of the transfer encoding between them do not matter."""
STATUS = re.compile(rb"HTTP/1.1 (\d+) ")

Noted = list[list[Any]]


class Over(Exception):
    """At SIGTERM."""


def main() -> None:
    how, port, file = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    clients: list[tuple[int, str]] = json.loads(file.read_text())
    signal.signal(signal.SIGTERM, _stop)
    noted: Noted = []
    try:
        (_follow if how == "streams" else _poll)(port, clients, noted)
    except Over:
        file.write_text(json.dumps(noted))


def _stop(_number: int, _frame: Any) -> None:
    raise Over


def _connect(port: int) -> socket.socket:
    connected = socket.create_connection(("127.0.0.1", port), timeout=60)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def _follow(port: int, clients: list[tuple[int, str]], noted: Noted) -> None:
    tokens = Tokens()
    waiting = set(range(len(clients)))
    with selectors.DefaultSelector() as selector:
        for number, (user_id, _) in enumerate(clients):
            one = _connect(port)
            one.sendall(tokens.request(user_id, "GET", "/events"))
            selector.register(one, selectors.EVENT_READ, number)
            _read(selector, noted, waiting, 0.0)
        while True:
            _read(selector, noted, waiting, 1.0)


def _read(selector: selectors.BaseSelector, noted: Noted, waiting: set[int], patience_s: float) -> None:
    for key, _ in selector.select(patience_s):
        piece = key.fileobj.recv(65_536)  # pyright: ignore
        now = time.time()
        if not piece:
            raise RuntimeError("a stream has ended")
        noted += [[key.data, int(id_), type_.decode(), now] for id_, type_ in BLOCK.findall(piece) if type_ != b"READY"]
        if waiting and b"event: READY" in piece:
            waiting.discard(key.data)
            if not waiting:
                print("ready", flush=True)


def _poll(port: int, clients: list[tuple[int, str]], noted: Noted) -> None:
    tokens = Tokens()
    requests = [tokens.request(user_id, "GET", f"/tasks/{task_id}") for user_id, task_id in clients]
    sockets = [_connect(port) for _ in clients]
    sent = [0.0] * len(clients)
    began = time.time()
    due = [(began + EVERY_S * number / len(clients), number) for number in range(len(clients))]
    print("ready", flush=True)
    with selectors.DefaultSelector() as selector:
        for number, one in enumerate(sockets):
            selector.register(one, selectors.EVENT_READ, number)
        while True:
            while due and due[0][0] <= time.time():
                planned, number = heapq.heappop(due)
                sent[number] = time.time()
                sockets[number].sendall(requests[number])
                heapq.heappush(due, (planned + EVERY_S, number))
            for key, _ in selector.select(max(due[0][0] - time.time(), 0)):
                answer = STATUS.match(key.fileobj.recv(65_536))  # pyright: ignore
                if answer:
                    noted.append([key.data, sent[key.data], time.time(), int(answer[1])])


if __name__ == "__main__":
    main()
