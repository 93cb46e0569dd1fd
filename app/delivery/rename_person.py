"""Takes the words that name a person out of a message that others still have to get."""

import json
import re
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

SHORTEST_NUMBER = 7


class Renamer:
    def __init__(self, words: Sequence[str], substitute: str) -> None:
        """Longer words come before their parts."""
        self._words = re.compile("|".join(re.escape(word) for word in words)) if words else None
        self._substitute = substitute

    def in_text(self, text: str) -> str:
        return self._words.sub(self._substitute, text) if self._words else text

    def to_json(self, value: Any) -> str:
        return json.dumps(self._in_json(value), ensure_ascii=False)

    def _in_json(self, value: Any) -> Any:
        match value:
            case dict():
                members = cast("dict[str, Any]", value)
                return {self.in_text(name): self._in_json(item) for name, item in members.items()}
            case list():
                return [self._in_json(item) for item in cast("list[Any]", value)]
            case str():
                # The app opens a task by its id, which may contain a short name by chance.
                return value if _is_id(value) else self.in_text(value)
            case int() if len(str(value)) >= SHORTEST_NUMBER:
                # Callers write phone numbers as numbers, too.
                return value if self.in_text(str(value)) == str(value) else self._substitute
            case _:
                return value


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
