"""Parses pieces of a list in processes beside this one, and keeps their order."""

import gc
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor

from app.foundation.parent import end_with_parent
from app.roster.lists.copy_rows import ParsedPiece, RawPiece

NICE = 10

Parse = Callable[[RawPiece], ParsedPiece]


def parse_here(parse: Parse, pieces: Iterator[RawPiece]) -> Iterator[tuple[RawPiece, ParsedPiece]]:
    return ((piece, parse(piece)) for piece in pieces)


def parse_beside(parse: Parse, pieces: Iterator[RawPiece], processes: int) -> Iterator[tuple[RawPiece, ParsedPiece]]:
    """The thread that begins must be the one that ends: with it, the kernel ends the processes."""
    # Spawned, because a copy of this process would share its threads' locks and its connections.
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (os.getpid(),))
    waiting: deque[tuple[RawPiece, Future[ParsedPiece]]] = deque()
    try:
        for piece in pieces:
            waiting.append((piece, pool.submit(parse, piece)))
            # One more than the processes, so that none of them waits for the next piece.
            if len(waiting) > processes + 1:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    finally:
        pool.shutdown(cancel_futures=True)


def _first(waiting: "deque[tuple[RawPiece, Future[ParsedPiece]]]") -> tuple[RawPiece, ParsedPiece]:
    piece, future = waiting.popleft()
    return piece, future.result()


def _begin(parent: int) -> None:
    end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # It ended before that, and nobody would give work or an end.
        os._exit(1)
    # They take what presses and deadlines leave of the processors.
    os.nice(NICE)
    # Ctrl-C is for the process that reads, which ends its processes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A tree of elements has no circles, but looking for them takes a third of the time to build it.
    gc.disable()
