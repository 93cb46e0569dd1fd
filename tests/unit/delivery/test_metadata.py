"""Validation of the metadata of a notification."""

from typing import Any

import pytest

from app.delivery.messages.metadata import check_metadata


def nested(levels: int) -> dict[str, Any]:
    return {"in": nested(levels - 1)} if levels > 1 else {}


FIT: list[dict[str, Any]] = [
    {},
    {"campaignId": "123", "tries": 3, "share": 0.5, "on": True, "off": None, "list": [1, "two", {"three": 3}]},
    {"data": {"type": "offer"}},
    {"addressKind": "FID"},
    {"big": 2**63 - 1, "small": -(2**63) + 1},
    {"text": "çok satırlı\n👵 \x01"},
    nested(10),
]

UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"a": "\x00"}, "NUL"),
    ({"\x00": 1}, "NUL"),
    ({"a": [{"b": ["\x00"]}]}, "NUL"),
    ({"a": float("inf")}, "number"),
    ({"a": float("nan")}, "number"),
    ({"a": 10**5000}, "number"),
    ({"a": -(2**64)}, "number"),
    (nested(11), "deeper"),
    ({"a": "x" * 8192}, "larger"),
    ({"a": "ş" * 4096}, "larger"),
    ({"data": "type"}, "`data`"),
    ({"data": {"deadline": 5}}, "`data`"),
    ({"data": None}, "`data`"),
    ({"addressKind": "EMAIL"}, "`addressKind`"),
    ({"addressKind": None}, "`addressKind`"),
    ({"addressKind": "WEB_PUSH"}, "`addressKind`"),
    ({"addressKind": ["FID"]}, "`addressKind`"),
]


@pytest.mark.parametrize("metadata", FIT)
def test_valid_metadata_is_accepted(metadata: dict[str, Any]) -> None:
    assert check_metadata(metadata) is None


@pytest.mark.parametrize(("metadata", "word"), UNFIT)
def test_invalid_metadata_is_refused(metadata: dict[str, Any], word: str) -> None:
    problem = check_metadata(metadata)
    assert problem is not None
    assert word in problem
