"""The lists that the benchmarks of the roster read: elders, in another order each night, and some of them changed."""

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from app.roster.kinds.known_kinds import kind_named
from app.roster.lists.reading_rules import ReadingRules
from app.roster.sync.whole_run import ListFile
from benchmarks.bench import TIME_ZONE

KIND = kind_named("elders")
ENROLMENT, CLEARANCE = KIND.source.lists
HEADER = "identifier;name;phone;lat;lon;institution;locale"
CSV_NAME, XML_NAME = "list.csv", "list.xml"

ChangedIn = Callable[[int], int]
"""The night in which the person with this number was changed last; 0 for the first list."""


@dataclass(frozen=True)
class Night:
    files: dict[str, ListFile]
    bytes: int
    """Of the lists, unpacked."""


def write_night(folder: Path, name: str, people: int, changed_in: ChangedIn, *, backwards: bool = True) -> Night:
    """A hundredth of the people stand on the second list as well."""
    files: dict[str, ListFile] = {}
    size = 0
    for declaration, wanted in ((ENROLMENT, people), (CLEARANCE, people // 100)):
        lines = "\n".join([HEADER, *_lines(wanted, changed_in, backwards), ""]).encode()
        file = folder / f"roster-{name}-{declaration.name}.zip"
        files[declaration.name] = write_archive(file, CSV_NAME, lines)
        size += len(lines)
    return Night(files, size)


def write_archive(file: Path, member: str, content: bytes) -> ListFile:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(member, content)
    return ListFile(file, hashlib.sha256(file.read_bytes()).digest())


def in_percent(share: int) -> ChangedIn:
    """Of the people, scattered over the list."""
    return lambda number: share if scattered(number) < share else 0


def scattered(number: int) -> int:
    """From 0 to 99, each for a hundredth of the people."""
    return number * 40_503 % 65_537 % 100


def csv_lines(people: int) -> bytes:
    return "\n".join([HEADER, *_lines(people, lambda _: 0, False), ""]).encode()


def xml_lines(people: int) -> bytes:
    return "\n".join(["<elders>", *map(_element, _lines(people, lambda _: 0, False)), "</elders>", ""]).encode()


def _element(line: str) -> str:
    identifier, name, phone, lat, lon, institution, locale = line.split(";")
    return (
        f"<elder><identifier>{identifier}</identifier><name>{name}</name><phone>{phone}</phone>"
        f"<locale>{locale}</locale><lat>{lat}</lat><lon>{lon}</lon>"
        f"<institutions><institution>{institution}</institution></institutions></elder>"
    )


def _lines(people: int, changed_in: ChangedIn, backwards: bool) -> Iterator[str]:
    for number in range(people - 1, -1, -1) if backwards else range(people):
        yield (
            f"{turkish_id(number)};Ayşe Nur Gülten Yıldırımoğlu {number};"
            f"+90532{changed_in(number):02}{number % 100_000:05};"
            f"{41 + number % 9973 / 1e5:.6f};{29 + number % 9949 / 1e5:.6f};{1 + number % 81};tr"
        )


def turkish_id(number: int) -> str:
    digits = [int(digit) for digit in str(100_000_000 + number)]
    digits.append((7 * sum(digits[0::2]) - sum(digits[1::2])) % 10)
    return "".join(map(str, [*digits, sum(digits) % 10]))


def reading(processes: int) -> ReadingRules:
    return ReadingRules(ZoneInfo(TIME_ZONE), processes=processes)
