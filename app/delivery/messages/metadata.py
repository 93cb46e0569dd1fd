"""What whoever submits a notification may put beside its words. Pure."""

import json
from typing import Any, cast

from app.users.models import AddressKind

LARGEST_BYTES = 8192
DEEPEST = 10
LARGEST_WHOLE = 2**63 - 1


def check_metadata(metadata: dict[str, Any]) -> str | None:
    """What is wrong with it, if anything is. Channels rely on what they read from it being what it should be."""
    wrong = _unfit(metadata, 1)
    if wrong is not None:
        return wrong
    if len(json.dumps(metadata, ensure_ascii=False).encode()) > LARGEST_BYTES:
        return f"is larger than {LARGEST_BYTES} bytes"
    if not _is_text_to_text(metadata.get("data", {})):
        return "has `data` that is not an object of strings, which is all that an app can be given"
    if metadata.get("addressKind", AddressKind.TOKEN) not in list(AddressKind):
        return f"has an `addressKind` that is not one of {', '.join(AddressKind)}"
    return None


def _unfit(value: Any, depth: int) -> str | None:
    """What the database or a receiver of JSON could not take."""
    match value:
        case str() if "\x00" in value:
            return "holds the character NUL, which nobody can store"
        case bool() | str() | None:
            return None
        # Put this way round, it holds for what is no number too.
        case int() | float() if not abs(value) <= LARGEST_WHOLE:
            return f"holds a number beyond {LARGEST_WHOLE}"
        case dict() | list() if depth > DEEPEST:
            return f"is nested deeper than {DEEPEST} levels"
        case dict():
            known = cast("dict[str, Any]", value)
            return _first_unfit([*known, *known.values()], depth)
        case list():
            return _first_unfit(cast("list[Any]", value), depth)
        case _:
            return None


def _first_unfit(values: list[Any], depth: int) -> str | None:
    return next((wrong for one in values if (wrong := _unfit(one, depth + 1)) is not None), None)


def _is_text_to_text(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(isinstance(one, str) for one in cast("dict[str, Any]", value).values())
