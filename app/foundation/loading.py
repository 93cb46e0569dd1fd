"""What is done while a process loads its modules."""

import gc
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

UNUSED = ("rich", "opentelemetry", "h2", "greenlet")
"""Our libraries import these where they are installed, for what we never ask them for: structlog for tracebacks on a
terminal, redis for its own metrics, httpcore for HTTP/2, SQLAlchemy for asyncio. Together they are a tenth of the
memory of a process."""
EMPTY = frozenset(
    {
        "redis.asyncio",
        "limits.aio",
        *(f"sqlalchemy.dialects.postgresql.{driver}" for driver in ("asyncpg", "pg8000", "psycopg2", "psycopg2cffi")),
    }
)
"""Parts that our libraries import in any case, for what we never ask them for: 5 MB in the three roles."""


class _NoContent(Loader):
    def exec_module(self, module: ModuleType) -> None:
        """The modules of the package can be imported as usual."""


@dataclass(frozen=True)
class _WithoutUnused:
    """Does not find what is unused, as where it is not installed, and leaves parts empty."""

    names: frozenset[str]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self.names:
            raise ModuleNotFoundError(f"{fullname} is not used here", name=fullname)
        found = PathFinder.find_spec(fullname, path) if fullname in EMPTY else None
        if found is not None:
            found.loader = _NoContent()
        return found


@contextmanager
def lean_imports(*unused: str) -> Generator[None]:
    """For the imports of a process: without what it does not use, and without garbage collections, because modules make
    hardly any garbage while they are imported, and to look for it takes a sixth of the time. Whoever imports later,
    such as the script of a job, finds everything."""
    # Pydantic would look for plugins in the metadata of every installed package, for 30 ms.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    finder = _WithoutUnused(frozenset({*UNUSED, *unused}))
    sys.meta_path.insert(0, finder)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        sys.meta_path.remove(finder)
        _forget_empty_parts()


def _forget_empty_parts() -> None:
    for name in EMPTY & sys.modules.keys():
        parent, _, part = name.rpartition(".")
        del sys.modules[name]
        delattr(sys.modules[parent], part)
