"""Who acts in this thread. Every transaction that begins meanwhile is told to a witness, which writes it to the audit
trail before it commits."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from sqlalchemy import Connection


class Witness(Protocol):
    author: str

    def begin(self, conn: Connection) -> None:
        """Called with the transaction open, before its first statement."""

    def end(self, conn: Connection) -> None:
        """Called after its last statement. An error rolls the transaction back."""

    def committed(self) -> None: ...


_present: ContextVar[Witness | None] = ContextVar("witness", default=None)


def present_witness() -> Witness | None:
    return _present.get()


@contextmanager
def witnessed_by(witness: Witness) -> Generator[None]:
    token = _present.set(witness)
    try:
        yield
    finally:
        _present.reset(token)
