"""Which processor cores the clients of a measurement and the measured processes run on."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Cores = frozenset[int]


@dataclass(frozen=True)
class Placement:
    name: str
    client: Cores
    service: Cores


def placements(cores: Iterable[int]) -> Sequence[Placement]:
    """The client on a core of its own, then everything on all cores. One core leaves only the second."""
    every = frozenset(cores)
    own = frozenset({max(every)})
    together = Placement("all cores shared", every, every)
    if len(every) == 1:
        return [together]
    return [Placement("client on a core of its own", own, every - own), together]


@contextmanager
def on(cores: Cores) -> Iterator[None]:
    """This thread runs there, and so does every process that it starts in the block."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def moved(pids: Sequence[int], cores: Cores) -> Iterator[None]:
    """These processes run there during the block, and so do those that they fork in it."""
    before = os.sched_getaffinity(0)
    move(pids, cores)
    try:
        yield
    finally:
        move(pids, before)


def move(pids: Iterable[int], cores: Iterable[int]) -> None:
    for pid in pids:
        for thread in threads_of(pid):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, cores)


def threads_of(pid: int) -> list[int]:
    """None if the process has ended."""
    with contextlib.suppress(OSError):
        return [int(thread.name) for thread in Path(f"/proc/{pid}/task").iterdir()]
    return []
