"""Log lines that become true with a commit. A transaction that is rolled back writes none of its lines."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

import structlog

log = structlog.get_logger(__name__)

Level = Literal["debug", "info"]


class _NewLine(NamedTuple):
    level: Level
    event: str
    ids: dict[str, Any]


_kept: ContextVar[list[_NewLine] | None] = ContextVar("lines_of_the_transaction", default=None)


def log_after_commit(level: Level, event: str, **ids: Any) -> None:
    """At once, where each statement is a transaction of its own."""
    line, kept = _NewLine(level, event, ids), _kept.get()
    if kept is None:
        _write([line])
    else:
        kept.append(line)


@contextmanager
def lines_kept_until_commit() -> Generator[None]:
    lines: list[_NewLine] = []
    token = _kept.set(lines)
    try:
        yield
    finally:
        _kept.reset(token)
    _write(lines)


def _write(lines: list[_NewLine]) -> None:
    if lines:
        # Bound once, because a logger that is not bound copies its processors for every line.
        bound = log.bind()
        for line in lines:
            getattr(bound, line.level)(line.event, **line.ids)
