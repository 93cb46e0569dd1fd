"""Finds people by the beginnings of their names, by phone number or by id.

Letters are folded, so that "isil" finds "Işıl": marks are taken off, and the dotless i is an i. The words of a person
are an expression with an index, and not a column, because nothing but the index reads them.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from app.foundation.pages import BIGINT_MAX

BETWEEN_WORDS = "’`-.,/\\()\"&'"
"""They part words, as in "Ayşe-Nur"."""
SHORTEST_PARTS = (10, 7, 4)
"""A number is also found by its last digits, beginning with the digits behind the country, behind the area, and by
those that people read out."""

_QUOTED = BETWEEN_WORDS.replace("'", "''")
_FOLDED = f"""
translate(lower(regexp_replace(normalize(name, NFKD), '[\\u0300-\\u036f]', '', 'g')),
          'ı{_QUOTED}', 'i{" " * len(BETWEEN_WORDS)}')""".strip()
_DIGITS = "ltrim(regexp_replace(coalesce(phone, ''), '[^0-9]', '', 'g'), '0')"
_PARTS = " ".join(f"|| ' ' || right({_DIGITS}, {length})" for length in SHORTEST_PARTS)
WORDS = f"array_to_tsvector(array_remove(string_to_array({_FOLDED} || ' ' || {_DIGITS} {_PARTS}, ' '), ''))"
"""SQL: the words by which a row of `users` is found. A statement repeats this expression exactly, or the planner does
not use the index."""

_NUMBER = re.compile(r"\+?[0-9()/-]*[0-9][0-9()/-]*")


@dataclass(frozen=True)
class PeopleSearch:
    condition: str
    """SQL on `users`, whose columns have no prefix. A statement finds the ids by it in a materialized part of its own:
    the planner would rather read all people in order, hoping that a page is soon full."""
    values: dict[str, Any] = field(default_factory=dict[str, Any])


def fold(text: str) -> str:
    """As `WORDS` does it; a test compares the two."""
    bare = "".join(one for one in unicodedata.normalize("NFKD", text) if not "\u0300" <= one <= "\u036f")
    table = str.maketrans("ı" + BETWEEN_WORDS, "i" + " " * len(BETWEEN_WORDS))
    return bare.lower().translate(table)


def search_people(text: str) -> PeopleSearch:
    """Everything that was typed has to be found: words in the name, and all digits together in the number or the id."""
    parts = text.split()
    digits = re.sub("[^0-9]", "", "".join(part for part in parts if _NUMBER.fullmatch(part)))
    words = [word for part in parts if not _NUMBER.fullmatch(part) for word in fold(part).split()]
    wanted = [f"'{word}':*" for word in words] + ([_either(digits)] if digits else [])
    if not wanted:
        return PeopleSearch("false")
    condition, values = f"{WORDS} @@ CAST(:search AS tsquery)", {"search": " & ".join(wanted)}
    if words or int(digits) > BIGINT_MAX:
        return PeopleSearch(condition, values)
    return PeopleSearch(f"({condition} OR id = :search_id)", {**values, "search_id": int(digits)})


def _either(digits: str) -> str:
    """A zero at the beginning belongs to the last digits of a number, or stands in front of all of them."""
    number = digits.lstrip("0")
    return f"'{digits}':*" if number in ("", digits) else f"('{digits}':* | '{number}':*)"
