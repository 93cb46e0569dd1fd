"""Looks for broken promises of the roster that only the torture can know: which lists were published, that nobody was
forgotten, and that a last run was undisturbed."""

import gzip
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.torture.checker import Conn, Violation, ask, some
from tests.torture.published_lists import KINDS, Publisher, Record, Records, record_of

ROWS = """
SELECT r.document_type, json_build_object('identifier', identifier, 'aliases', aliases, 'name', fields -> 'name',
       'phone', fields -> 'phone', 'locale', fields -> 'locale')
FROM roster_rows r"""
ARCHIVES = "SELECT document_type, archive_name FROM roster_states WHERE archive_name IS NOT NULL"

ON_LIST = {
    "a person on a list who neither is bound nor waits": """
        SELECT r.identifier FROM roster_rows r
        LEFT JOIN roster_people p USING (document_type, identifier)
        LEFT JOIN roster_to_apply q USING (document_type, identifier)
        WHERE q.run_id IS NULL AND (p.user_id IS NULL OR p.left_at IS NOT NULL)""",
    "a person who was entered twice": """
        SELECT role, phone FROM users WHERE phone IS NOT NULL GROUP BY role, phone HAVING count(*) > 1""",
}
AFTER_THE_LAST = {
    "a person who still waits after an undisturbed run": "SELECT identifier, run_id FROM roster_to_apply",
    "a person on a list who is not active": """
        SELECT p.user_id FROM roster_people p JOIN roster_rows r USING (document_type, identifier)
        JOIN users u ON u.id = p.user_id WHERE NOT u.active""",
}


def check_lists(conn: Conn, publisher: Publisher) -> list[Violation]:
    """At any moment, in one snapshot: the rows of both kinds are those of one publication."""
    rows = _rows(conn)
    found = ask(conn, ON_LIST)
    if rows and not publisher.has_all(rows):
        counts = ", ".join(f"{len(records)} {kind}" for kind, records in rows.items())
        found.append(Violation("rows that are none of the published lists", counts))
    return found


def check_followed(conn: Conn, publisher: Publisher) -> list[Violation]:
    """After one undisturbed run."""
    found = [*check_lists(conn, publisher), *ask(conn, AFTER_THE_LAST)]
    if _rows(conn) != publisher.published[-1].records:
        found.append(Violation("rows that are not the last lists", f"publication {len(publisher.published)}"))
    return found


def _rows(conn: Conn) -> Mapping[str, Records]:
    names = {number: kind for kind, number in KINDS.items()}
    rows: dict[str, set[Record]] = defaultdict(set)
    for number, shown in conn.execute(ROWS.encode()):
        rows[names[number]].add(record_of(shown))
    return {kind: frozenset(records) for kind, records in rows.items()}


def check_archives(conn: Conn, folder: Path, publisher: Publisher) -> list[Violation]:
    """The archive that the row names is there and is a whole list. A run may replace it meanwhile, so the row is read
    again if it is not there."""
    before: list[Any] | None = None
    while True:
        named = conn.execute(ARCHIVES).fetchall()
        details = [detail for number, name in named for detail in _archive_flaws(folder, number, name, publisher)]
        if not details or named == before:
            return some("an archive that is missing or not whole", details)
        before = named


def _archive_flaws(folder: Path, number: int, name: str, publisher: Publisher) -> list[str]:
    kind = next(kind for kind, known in KINDS.items() if known == number)
    try:
        with gzip.open(folder / "archives" / kind / name) as lines:
            records = frozenset(record_of(json.loads(line)) for line in lines)
    except (OSError, EOFError, ValueError) as error:
        return [f"{name}: {type(error).__name__}"]
    return [] if publisher.has(kind, records) else [f"{name} is none of the published lists"]
