"""The setting `ROSTER_SOURCES`: where the lists of each source are."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

_SOURCES = TypeAdapter(dict[str, dict[str, str]])


def parse_sources(text: str) -> Mapping[str, Mapping[str, str]]:
    """Paths or URLs by source and list. Raises `ValueError` with what is wrong and where."""
    try:
        sources = _SOURCES.validate_json(text)
    except ValidationError:
        raise ValueError(
            'must be JSON such as {"students": {"enrolment": "https://lists.example.org/enrolment.zip"}}'
        ) from None
    for source, lists in sources.items():
        for name, location in lists.items():
            _require_location(f"{source}.{name}", location)
    return sources


def _require_location(place: str, location: str) -> None:
    if "://" not in location:
        if not Path(location).is_absolute():
            raise ValueError(f"{place}: must be an https address or the absolute path of a file")
        return
    parts = urlsplit(location)
    if parts.scheme not in {"https", "http"} or not parts.hostname:
        raise ValueError(f"{place}: must be an https address or the absolute path of a file")
    if parts.password is not None:
        raise ValueError(f"{place}: must not hold a password")
