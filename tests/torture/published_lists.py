"""The lists that universities and municipalities publish in a run, and what a reader of each must see."""

import json
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.lists import packed, turkish_id
from tests.torture.people import Person

KINDS = {"students": 3, "elders": 4}
"""With the number of each in the tables."""
LISTS = ("enrolment", "clearance")
HEADER = "identifier;name;phone;locale;institution"
STAYS = 0.7
"""The probability that somebody is on a list."""

Record = tuple[str, str, str, str, tuple[tuple[str, str], ...]]
"""Identifier, name, phone, language, and the affiliations in their order."""
Records = frozenset[Record]


def record_of(shown: Mapping[str, Any]) -> Record:
    """Of a line of an archive, a copied record, or a row."""
    affiliations = tuple((one["alias"], one["type"]) for one in shown["aliases"])
    return shown["identifier"], shown["name"], shown["phone"], shown["locale"], affiliations


@dataclass(frozen=True)
class Listed:
    identifier: str
    name: str
    phone: str


@dataclass(frozen=True)
class Publication:
    sources: str
    """The value of ROSTER_SOURCES."""
    records: Mapping[str, Records]
    """By kind."""


@dataclass
class Publisher:
    """Each publication has files of its own, so that a run reads either all four or none of them."""

    folder: Path
    people: Mapping[str, Sequence[Listed]]
    rng: random.Random
    published: list[Publication] = field(default_factory=list[Publication])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def publish(self, *, everybody: bool = False) -> Publication:
        folder = self.folder / str(len(self.published))
        folder.mkdir(parents=True)
        records = {kind: self._write(folder, kind, everybody) for kind in KINDS}
        sources = {kind: {name: str(_file(folder, kind, name)) for name in LISTS} for kind in KINDS}
        made = Publication(json.dumps(sources), records)
        with self._lock:
            self.published.append(made)
        return made

    def has(self, kind: str, records: Records) -> bool:
        with self._lock:
            return any(one.records[kind] == records for one in self.published)

    def has_all(self, records: Mapping[str, Records]) -> bool:
        with self._lock:
            return any(one.records == records for one in self.published)

    def _write(self, folder: Path, kind: str, everybody: bool) -> Records:
        lines: dict[str, list[str]] = {name: [HEADER] for name in LISTS}
        records: set[Record] = set()
        for person in self.people[kind]:
            if not everybody and self.rng.random() > STAYS:
                continue
            locale = self.rng.choice(("tr", "en"))
            institutions = {name: str(self.rng.randint(1001, 1003)) for name in self._lists()}
            for name, institution in institutions.items():
                lines[name].append(";".join([person.identifier, person.name, person.phone, locale, institution]))
            affiliations = sorted((institution, name.upper()) for name, institution in institutions.items())
            records.add((person.identifier, person.name, person.phone, locale, tuple(affiliations)))
        for name in LISTS:
            packed(_file(folder, kind, name), "\n".join([*lines[name], ""]).encode())
        return frozenset(records)

    def _lists(self) -> Sequence[str]:
        return self.rng.choice((LISTS, LISTS[:1], LISTS[1:]))


def _file(folder: Path, kind: str, name: str) -> Path:
    return folder / f"{kind}-{name}.zip"


def listed(busy: Mapping[str, Sequence[Person]], strangers: int) -> dict[str, list[Listed]]:
    """The busy people of each kind, who were entered by hand, and strangers, who enter by the list."""
    return {
        kind: [
            *(Listed(turkish_id(person.id), person.name, person.phone) for person in busy[kind]),
            *(_stranger(number, 10_000 * KINDS[kind] + number) for number in range(strangers)),
        ]
        for kind in KINDS
    }


def _stranger(number: int, unique: int) -> Listed:
    return Listed(turkish_id(unique), f"Işıl Çağrı {number}", f"+90556{unique:07}")
