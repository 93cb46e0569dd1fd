"""Small lists for tests: ids with right check digits, and archives."""

import zipfile
from collections.abc import Iterable
from pathlib import Path

HEADER = "identifier;name;phone;institution"


def turkish_id(number: int) -> str:
    digits = [int(digit) for digit in f"{100_000_000 + number:09d}"]
    digits.append((7 * sum(digits[0::2]) - sum(digits[1::2])) % 10)
    digits.append(sum(digits) % 10)
    return "".join(map(str, digits))


def line(number: int, *, name: str | None = None, phone: str = "", institution: int = 1001) -> str:
    return f"{turkish_id(number)};{name or f'Öğrenci {number}'};{phone};{institution}"


def write_csv(file: Path, lines: Iterable[str], header: str = HEADER) -> Path:
    return write_archive(file, "list.csv", "\n".join([header, *lines]) + "\n")


def write_archive(file: Path, member: str, content: str) -> Path:
    """The same content makes the same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0)), content)
    return file
