"""The hash of a record covers every field and the border between fields."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import combinations
from typing import Any
from uuid import UUID

from app.delivery.channels.audit_trail import GENESIS, link

ENTRY: dict[str, Any] = {
    "previous_hash": GENESIS,
    "notification_id": UUID(int=1),
    "recipient": "ops",
    "subject": "a",
    "body": "b",
    "metadata": "{}",
    "written_at": datetime(2026, 3, 12, 9, 0, tzinfo=UTC),
}
OTHERS: list[dict[str, Any]] = [
    {},
    {"previous_hash": bytes(31) + b"\x01"},
    {"notification_id": UUID(int=2)},
    {"recipient": "op", "subject": "sa"},
    {"recipient": "opsa", "subject": ""},
    {"subject": "", "body": "ab"},
    {"subject": "ab", "body": ""},
    {"subject": 'a","b', "body": ""},
    {"subject": "a\\", "body": "b"},
    {"body": "b{}", "metadata": ""},
    {"body": "b\n"},
    {"metadata": "{ }"},
    {"written_at": datetime(2026, 3, 12, 9, 0, 0, 1, tzinfo=UTC)},
    {"author": "user:1"},
    {"author": "user:2"},
    {"author": ""},
]


def test_different_records_have_different_hashes() -> None:
    for one, other in combinations(OTHERS, 2):
        assert link(**(ENTRY | one)) != link(**(ENTRY | other)), (one, other)


def test_hash_does_not_depend_on_the_time_zone() -> None:
    there = ENTRY["written_at"].astimezone(timezone(timedelta(hours=3)))
    assert link(**(ENTRY | {"written_at": there})) == link(**ENTRY)


def test_hash_never_changes() -> None:
    """A trail that was written years ago has to stay valid."""
    assert link(**ENTRY).hex() == "84f8aaf9b8ca19cab3e58270275ddb6c38d09d29df110e668c4db6f073f2bd15"
    authored = link(**ENTRY, author="user:1").hex()
    assert authored == "32988ce00230e9906a8598f452f9e6da7d0bfdd6940ebb41242ac8ba59866b67"
