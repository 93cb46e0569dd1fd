"""What becomes true with a commit: lines of the log, and counts. A transaction that is rolled back leaves none."""

import logging
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple
from uuid import UUID

import structlog

log = structlog.get_logger(__name__)

Level = Literal["debug", "info"]
Count = Callable[[str, str, int], None]
"""Takes the name of a count, a label, and the number to add."""


class _NewLine(NamedTuple):
    level: Level
    event: str
    ids: dict[str, Any]


@dataclass
class _Kept:
    lines: list[_NewLine] = field(default_factory=list[_NewLine])
    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    @cached_property
    def has_debug_lines(self) -> bool:
        """False if the log leaves out lines of this level. A batch then keeps none for each of its rows."""
        return log.bind().is_enabled_for(logging.DEBUG)


_kept: ContextVar[_Kept | None] = ContextVar("kept_by_the_transaction", default=None)


def log_after_commit(level: Level, event: str, **ids: Any) -> None:
    """At once outside of a transaction. A UUID becomes text when the line is written."""
    kept = _kept.get()
    if kept is None:
        _write([_NewLine(level, event, ids)])
    elif level != "debug" or kept.has_debug_lines:
        kept.lines.append(_NewLine(level, event, ids))


def count_after_commit(name: str, label: str) -> None:
    """Counts nothing outside of a transaction of `Database`, which knows who counts."""
    kept = _kept.get()
    if kept is not None:
        kept.counts[name, label] += 1


@contextmanager
def kept_until_commit(count: Count) -> Generator[None]:
    kept = _Kept()
    token = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(token)
    _write(kept.lines)
    for (name, label), number in kept.counts.items():
        count(name, label, number)


def count_nothing(_name: str, _label: str, _number: int) -> None: ...


def _write(lines: list[_NewLine]) -> None:
    if lines:
        # Bound once, because a logger that is not bound copies its processors for every line.
        bound = log.bind()
        for line in lines:
            ids = {name: str(value) if isinstance(value, UUID) else value for name, value in line.ids.items()}
            getattr(bound, line.level)(line.event, **ids)
