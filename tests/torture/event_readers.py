"""People who follow events through all faults, and resume after each break from the last one that they got."""

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from app.users.models import Role
from tests.torture.people import People, Person

SILENCE_S = 20
"""Without a fault there is a sign of life every 15 s."""
LIVES_S = (0.5, 12.0)
"""How long a reader stays before it hangs up by itself."""
PASSING = frozenset({403, 429, 502, 503, 504})
"""Refusals after which a reader tries again. 403: deactivated at the moment."""


@dataclass(frozen=True)
class SeenEvent:
    id: int
    fields: Mapping[str, Any]
    came_at: float
    """In wall-clock time, which PostgreSQL uses, too."""
    connected_at: float


@dataclass
class EventReader:
    person: Person
    role: Role
    ports: Sequence[int]
    rng: random.Random
    institution_id: int | None = None
    began: int | None = None
    """The id of the first READY."""
    seen: list[SeenEvent] = field(default_factory=list[SeenEvent])
    wrong: list[str] = field(default_factory=list[str])
    """Answers that no reader must get."""
    counts: Counter[str] = field(default_factory=Counter[str])
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def last(self) -> int | None:
        return self.seen[-1].id if self.seen else self.began

    def run(self) -> None:
        while not self._over.is_set():
            with suppress(OSError, http.client.HTTPException):
                self._connect()
            self._over.wait(self.rng.uniform(0.05, 0.8))

    def stop(self) -> None:
        self._over.set()

    def _connect(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.rng.choice(self.ports), timeout=SILENCE_S)
        hang_up = threading.Timer(self.rng.uniform(*LIVES_S), _shut, (connection,))
        try:
            resume = {} if self.last is None else {"Last-Event-ID": str(self.last)}
            connection.request("GET", "/events", headers={"Authorization": f"Bearer {self.person.token}"} | resume)
            hang_up.start()
            answer = connection.getresponse()
            self.counts[str(answer.status)] += 1
            if answer.status == 200:
                self._follow(answer)
            elif answer.status not in PASSING:
                self.wrong.append(f"{answer.status} for Last-Event-ID {self.last}: {answer.read()[:200]!r}")
        finally:
            hang_up.cancel()
            connection.close()

    def _follow(self, answer: http.client.HTTPResponse) -> None:
        connected_at = time.time()
        blocks = blocks_of(answer)
        self._ready(next(blocks, None))
        for fields in blocks:
            if "id" in fields:
                self.seen.append(SeenEvent(fields["id"], fields, time.time(), connected_at))
            elif fields["type"] == "END":
                self.counts[fields["reason"]] += 1
                if fields["reason"] == "TOKEN_EXPIRED":
                    self.wrong.append("a token that is valid has ended a stream")

    def _ready(self, fields: Mapping[str, Any] | None) -> None:
        if fields is None:
            return
        if fields["type"] != "READY" or fields["id"] != (fields["id"] if self.last is None else self.last):
            self.wrong.append(f"a stream after {self.last} that begins with {fields}")
        if self.began is None:
            self.began = fields["id"]


def blocks_of(answer: http.client.HTTPResponse) -> Iterator[Mapping[str, Any]]:
    """The data of each block that has arrived as a whole."""
    received = b""
    while piece := answer.read1(65_536):
        *blocks, received = (received + piece).split(b"\n\n")
        for block in blocks:
            lines = dict(line.split(": ", 1) for line in block.decode().split("\n"))
            fields = json.loads(lines["data"])
            assert (lines["event"], lines.get("id")) == (fields["type"], str(fields["id"]) if "id" in fields else None)
            yield fields


def _shut(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError):
        if connection.sock is not None:
            connection.sock.shutdown(2)


class EventReaders:
    def __init__(self, people: People, ports: Sequence[int], rng: random.Random) -> None:
        """The first elder of a busy place and its first student are deactivated at times; a calm elder belongs to the
        institution of the last coordinator."""
        busy, calm = people.busy[0], people.calm[0]
        chosen = [
            (people.coordinators[0], Role.COORDINATOR, None),
            (people.of_institution, Role.COORDINATOR, people.institution_id),
            (busy.elders[0], Role.ELDER, None),
            (busy.elders[1], Role.ELDER, None),
            (calm.elders[0], Role.ELDER, people.institution_id),
            (busy.students[0], Role.STUDENT, None),
        ]
        self.readers = [
            EventReader(person, role, ports, random.Random(rng.random()), institution_id)
            for person, role, institution_id in chosen
        ]
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        self._threads = [threading.Thread(target=reader.run, daemon=True) for reader in self.readers]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        for reader in self.readers:
            reader.stop()
        for thread in self._threads:
            thread.join(SILENCE_S + LIVES_S[1])
