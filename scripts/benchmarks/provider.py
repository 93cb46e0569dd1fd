"""A stand-in for everybody who takes messages from us: FCM, an SMS gateway, WhatsApp, webhooks and a mail server.

A process of its own, started by `stand_in.py`. It costs little, answers after the latency it was told, fails or hangs
where it was told to, and notes when each message came. Of a provider's contract it knows what the channels read.
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
from typing import Any

NOT_TO_BE_FOUND = ""
"""The id of a message whose provider is told none."""


@dataclass(frozen=True)
class Conduct:
    """How a provider behaves."""

    latency_s: float = 0.0
    failing: float = 0.0
    """Share of requests that it answers with 503, or with 451 where it is a mail server."""
    hangs: bool = False


@dataclass
class Diary:
    """Which message came when, by the system's clock."""

    tried: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    accepted: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])


class Providers:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._conduct: dict[str, Conduct] = {}
        self._diaries: dict[str, Diary] = defaultdict(Diary)

    def behave(self, told: dict[str, dict[str, Any]]) -> None:
        self._conduct |= {name: Conduct(**conduct) for name, conduct in told.items()}

    def meet(self, name: str, id_: str) -> tuple[bool, float | None]:
        """Whether the message is taken, and after how long that is said; None is never."""
        now, conduct, diary = time.time(), self._conduct.get(name, Conduct()), self._diaries[name]
        diary.tried.append((id_, now))
        if conduct.hangs:
            return False, None
        taken = self._random.random() >= conduct.failing
        if taken:
            diary.accepted.append((id_, now))
        return taken, conduct.latency_s

    def diary(self) -> dict[str, Any]:
        return {name: asdict(diary) for name, diary in self._diaries.items()}

    def forget(self) -> None:
        self._diaries.clear()


class _Speaker(asyncio.Protocol):
    """One connection. Answers keep their order, because each is waited for before the next request comes."""

    transport: asyncio.Transport

    def __init__(self, providers: Providers) -> None:
        self.providers = providers
        self.received = bytearray()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def say_after(self, wait_s: float | None, words: bytes) -> None:
        if wait_s is None:
            return
        if wait_s:
            asyncio.get_running_loop().call_later(wait_s, self._say, words)
        else:
            self._say(words)

    def _say(self, words: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(words)


class Http(_Speaker):
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
            case "/conduct":
                self.providers.behave(json.loads(body))
                self._give(200, {})
            case "/diary":
                self._give(200, self.providers.diary())
            case "/forget":
                self.providers.forget()
                self._give(200, {})
            case "/token":
                self._give(200, {"access_token": "ya29.bench", "expires_in": 3599, "token_type": "Bearer"})
            case _:
                self._meet(path, head, body)

    def _meet(self, path: str, head: bytes, body: bytes) -> None:
        name, id_of, told = _provider(path)
        id_ = id_of(head, body)
        taken, wait_s = self.providers.meet(name, id_)
        if taken:
            self._give(200, told(id_), wait_s)
        else:
            self._give(503, {"error": {"code": 503, "status": "UNAVAILABLE"}}, wait_s)

    def _give(self, status: int, told: dict[str, Any], wait_s: float | None = 0.0) -> None:
        body = json.dumps(told).encode()
        head = f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.say_after(wait_s, head.encode() + body)


def _header(name: bytes) -> Callable[[bytes, bytes], str]:
    pattern = re.compile(rb"(?i)\r\n" + name + rb": *(\S+)")

    def find(head: bytes, _body: bytes) -> str:
        found = pattern.search(head)
        return found[1].decode() if found else NOT_TO_BE_FOUND

    return find


_webhook_id, _idempotency_key = _header(b"webhook-id"), _header(b"idempotency-key")
_NOTIFICATION_ID = re.compile(rb'"notificationId": *"([^"]+)"')


def _in_data(_head: bytes, body: bytes) -> str:
    found = _NOTIFICATION_ID.search(body)
    return found[1].decode() if found else NOT_TO_BE_FOUND


def _provider(path: str) -> tuple[str, Callable[[bytes, bytes], str], Callable[[str], dict[str, Any]]]:
    """Whose address it is, where the message's id is found, and what is said to a message that is taken. Under
    `/bare/…` everybody speaks as webhooks do."""
    if path.startswith("/v1/projects/"):
        return "PUSH", _in_data, lambda id_: {"name": f"projects/bench/messages/{id_}"}
    if path == "/sms":
        return "SMS", _idempotency_key, lambda id_: {"id": id_}
    if path.startswith("/whatsapp/"):
        return "WHATSAPP", lambda _head, _body: NOT_TO_BE_FOUND, lambda _: {"messages": [{"id": "wamid.bench"}]}
    return (path.removeprefix("/bare/") if path.startswith("/bare/") else "WEBHOOK"), _webhook_id, lambda _: {}


class Mail(_Speaker):
    """As little of SMTP as one letter after the other needs."""

    def __init__(self, providers: Providers) -> None:
        super().__init__(providers)
        self._in_letter = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._say(b"220 bench\r\n")

    def data_received(self, data: bytes) -> None:
        self.received += data
        end = b"\r\n.\r\n" if self._in_letter else b"\r\n"
        while (place := self.received.find(end)) >= 0:
            said = bytes(self.received[:place])
            del self.received[: place + len(end)]
            if self._in_letter:
                self._take(said)
            else:
                self._obey(said[:4].upper())
            end = b"\r\n.\r\n" if self._in_letter else b"\r\n"

    def _obey(self, command: bytes) -> None:
        if command == b"DATA":
            self._in_letter = True
            self._say(b"354 go on\r\n")
        elif command == b"QUIT":
            self.transport.close()
        else:
            self._say(b"250 2.0.0 Ok\r\n")

    def _take(self, letter: bytes) -> None:
        self._in_letter = False
        found = re.search(rb"(?i)message-id: *<([^@>]+)@", letter)
        taken, wait_s = self.providers.meet("EMAIL", found[1].decode() if found else NOT_TO_BE_FOUND)
        self.say_after(wait_s, b"250 2.0.0 Ok: queued as BENCH\r\n" if taken else b"451 4.3.0 Later\r\n")


async def serve(seed: int) -> None:
    """Says on which ports, then serves until it is ended."""
    providers = Providers(seed)
    loop = asyncio.get_running_loop()
    http = await loop.create_server(lambda: Http(providers), "127.0.0.1", 0, backlog=512)
    mail = await loop.create_server(lambda: Mail(providers), "127.0.0.1", 0, backlog=512)
    print("ready", *(server.sockets[0].getsockname()[1] for server in (http, mail)), flush=True)
    await http.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
