"""Checks the metadata of a notification or of a recipient's channel. Pure."""

import json
from typing import Any, cast

from app.foundation.storable import Flaw, flaw_of_json
from app.users.models import AddressKind

LARGEST_BYTES = 8192
DEEPEST = 10
LARGEST_WHOLE = 2**63 - 1
# A subscription of a browser is known only to the device that has registered it.
_GIVEN_KINDS = (AddressKind.TOKEN, AddressKind.FID)

_PROBLEMS = {
    Flaw.NUL: "holds the character NUL, which nobody can store",
    Flaw.SURROGATE: "holds half of a surrogate pair, which nobody can store",
    Flaw.NUMBER: f"holds a number beyond {LARGEST_WHOLE}",
    Flaw.DEPTH: f"is nested deeper than {DEEPEST} levels",
}


def check_metadata(metadata: dict[str, Any]) -> str | None:
    """The first problem, or None. Channels rely on this check and do not repeat it."""
    flaw = flaw_of_json(metadata, deepest=DEEPEST, largest=LARGEST_WHOLE)
    if flaw is not None:
        return _PROBLEMS[flaw]
    if len(json.dumps(metadata, ensure_ascii=False).encode()) > LARGEST_BYTES:
        return f"is larger than {LARGEST_BYTES} bytes"
    if not _is_object_of_strings(metadata.get("data", {})):
        return "has `data` that is not an object of strings, which is all that an app can be given"
    if metadata.get("addressKind", AddressKind.TOKEN) not in _GIVEN_KINDS:
        return f"has an `addressKind` that is not one of {', '.join(_GIVEN_KINDS)}"
    return None


def _is_object_of_strings(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(isinstance(member, str) for member in cast("dict[str, Any]", value).values())
