"""What is done while a process loads its modules."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Generator[None]:
    """Modules make hardly any garbage while they are imported, and to look for it takes a sixth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
