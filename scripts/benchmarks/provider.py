"""A stand-in for all providers: FCM, an SMS gateway, WhatsApp, webhooks and a mail server.

`stand_in.py` starts it as a process. It uses little processor time, answers, fails, resets or hangs as `Behaviour`
says, and logs when each message came. It implements only the parts of the contracts that the channels read.
"""

import asyncio
import json
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from struct import pack
from typing import Any, NamedTuple

UNKNOWN_ID = ""
"""The id of a message whose request carries none."""


@dataclass(frozen=True)
class Behaviour:
    """How a provider answers."""

    latency_s: float = 0.0
    failing: float = 0.0
    """Share of requests that fail: HTTP with 503, SMTP with 451."""
    lost: float = 0.0
    """Share of HTTP requests whose answer is lost: half are never answered, half of the connections are reset. The
    provider takes the message of every other one."""
    hangs: bool = False


class Fate(NamedTuple):
    """What becomes of a message."""

    is_taken: bool
    answers_after_s: float | None = None
    """None: it gets no answer."""
    resets: bool = False


@dataclass
class RequestLog:
    """(id, time of the system's clock) of each message that came, and of each that was accepted."""

    tried: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    accepted: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])


class Providers:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._behaviour: dict[str, Behaviour] = {}
        self._request_logs: dict[str, RequestLog] = defaultdict(RequestLog)

    def behave(self, behaviours: dict[str, dict[str, Any]]) -> None:
        self._behaviour |= {name: Behaviour(**behaviour) for name, behaviour in behaviours.items()}

    def handle(self, name: str, id_: str) -> Fate:
        now, behaviour, request_log = time.time(), self._behaviour.get(name, Behaviour()), self._request_logs[name]
        request_log.tried.append((id_, now))
        fate = self._fate(behaviour)
        if fate.is_taken:
            request_log.accepted.append((id_, now))
        return fate

    def _fate(self, behaviour: Behaviour) -> Fate:
        if behaviour.hangs:
            return Fate(False)
        chance = self._random.random()
        if chance < behaviour.lost:
            return Fate(self._random.random() < 0.5, resets=self._random.random() < 0.5)
        return Fate(chance >= behaviour.lost + behaviour.failing, behaviour.latency_s)

    def request_logs(self) -> dict[str, Any]:
        return {name: asdict(request_log) for name, request_log in self._request_logs.items()}

    def forget(self) -> None:
        self._request_logs.clear()


class _Connection(asyncio.Protocol):
    """One connection. The answers keep their order, because clients send a request only after the last answer."""

    transport: asyncio.Transport

    def __init__(self, providers: Providers) -> None:
        self.providers = providers
        self.received = bytearray()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def send_after(self, wait_s: float | None, data: bytes) -> None:
        if wait_s is None:
            return
        if wait_s:
            asyncio.get_running_loop().call_later(wait_s, self._send, data)
        else:
            self._send(data)

    def reset(self) -> None:
        self.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, pack("ii", 1, 0))
        self.transport.abort()

    def _send(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)


class Http(_Connection):
    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.received[:end])
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self.received) < whole:
                return
            body = bytes(self.received[end + 4 : whole])
            del self.received[:whole]
            self._answer(head.partition(b"\r\n")[0].split()[1].decode(), head, body)

    def _answer(self, path: str, head: bytes, body: bytes) -> None:
        match path:
            case "/behaviour":
                self.providers.behave(json.loads(body))
                self._give(200, {})
            case "/request_logs":
                self._give(200, self.providers.request_logs())
            case "/forget":
                self.providers.forget()
                self._give(200, {})
            case "/token":
                self._give(200, {"access_token": "ya29.bench", "expires_in": 3599, "token_type": "Bearer"})
            case _:
                self._handle(path, head, body)

    def _handle(self, path: str, head: bytes, body: bytes) -> None:
        name, id_of, body_of = _provider(path)
        id_ = id_of(head, body)
        fate = self.providers.handle(name, id_)
        if fate.resets:
            self.reset()
        elif fate.is_taken:
            self._give(200, body_of(id_), fate.answers_after_s)
        else:
            self._give(503, {"error": {"code": 503, "status": "UNAVAILABLE"}}, fate.answers_after_s)

    def _give(self, status: int, content: dict[str, Any], wait_s: float | None = 0.0) -> None:
        body = json.dumps(content).encode()
        head = f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.send_after(wait_s, head.encode() + body)


def _header(name: bytes) -> Callable[[bytes, bytes], str]:
    pattern = re.compile(rb"(?i)\r\n" + name + rb": *(\S+)")

    def find(head: bytes, _body: bytes) -> str:
        found = pattern.search(head)
        return found[1].decode() if found else UNKNOWN_ID

    return find


_webhook_id, _idempotency_key = _header(b"webhook-id"), _header(b"idempotency-key")
_NOTIFICATION_ID = re.compile(rb'"notificationId": *"([^"]+)"')


def _in_data(_head: bytes, body: bytes) -> str:
    found = _NOTIFICATION_ID.search(body)
    return found[1].decode() if found else UNKNOWN_ID


def _provider(path: str) -> tuple[str, Callable[[bytes, bytes], str], Callable[[str], dict[str, Any]]]:
    """The provider of this path, a function that finds the message's id, and one that makes the body of an answer.
    Under `/bare/…` all types use the contract of webhooks."""
    if path.startswith("/v1/projects/"):
        return "PUSH", _in_data, lambda id_: {"name": f"projects/bench/messages/{id_}"}
    if path == "/sms":
        return "SMS", _idempotency_key, lambda id_: {"id": id_}
    if path.startswith("/whatsapp/"):
        return "WHATSAPP", lambda _head, _body: UNKNOWN_ID, lambda _: {"messages": [{"id": "wamid.bench"}]}
    return (path.removeprefix("/bare/") if path.startswith("/bare/") else "WEBHOOK"), _webhook_id, lambda _: {}


class Mail(_Connection):
    """As much of SMTP as one message after the other on a connection needs."""

    def __init__(self, providers: Providers) -> None:
        super().__init__(providers)
        self._in_message = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._send(b"220 bench\r\n")

    def data_received(self, data: bytes) -> None:
        self.received += data
        end = b"\r\n.\r\n" if self._in_message else b"\r\n"
        while (place := self.received.find(end)) >= 0:
            content = bytes(self.received[:place])
            del self.received[: place + len(end)]
            if self._in_message:
                self._take(content)
            else:
                self._run(content[:4].upper())
            end = b"\r\n.\r\n" if self._in_message else b"\r\n"

    def _run(self, command: bytes) -> None:
        if command == b"DATA":
            self._in_message = True
            self._send(b"354 go on\r\n")
        elif command == b"QUIT":
            self.transport.close()
        else:
            self._send(b"250 2.0.0 Ok\r\n")

    def _take(self, mail: bytes) -> None:
        self._in_message = False
        found = re.search(rb"(?i)message-id: *<([^@>]+)@", mail)
        fate = self.providers.handle("EMAIL", found[1].decode() if found else UNKNOWN_ID)
        answer = b"250 2.0.0 Ok: queued as BENCH\r\n" if fate.is_taken else b"451 4.3.0 Later\r\n"
        self.send_after(fate.answers_after_s, answer)


async def serve(seed: int) -> None:
    """Prints the ports, then serves until the process is ended."""
    providers = Providers(seed)
    loop = asyncio.get_running_loop()
    http = await loop.create_server(lambda: Http(providers), "127.0.0.1", 0, backlog=512)
    mail = await loop.create_server(lambda: Mail(providers), "127.0.0.1", 0, backlog=512)
    print("ready", *(server.sockets[0].getsockname()[1] for server in (http, mail)), flush=True)
    await http.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
