"""Keeps what a measurement has measured when it fails at a later step."""

import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from benchmarks.bench import Bench
from benchmarks.report import Section

LONGEST = 300
"""Characters of an error in the table. The whole of it is on stderr."""

Measure = Callable[[Bench], Section]


class Unfinished(Exception):
    """A measurement failed after it had measured something. The cause is the error."""

    def __init__(self, section: Section) -> None:
        super().__init__(f"{section.name} was not finished")
        self.section = section


@contextmanager
def keeping(section: Callable[[], Section]) -> Iterator[None]:
    """If the block fails, the section of what it has measured until then is kept. `section` may fail too, if nothing is
    complete yet; then the error of the block goes on alone."""
    try:
        yield
    except Exception as error:
        try:
            kept = section()
        except Exception:
            raise error from None
        raise Unfinished(kept) from error


def attempt(name: str, measure: Measure, bench: Bench) -> Section:
    """The section of a measurement. If it fails, the section has what was measured until then, and the error."""
    before = bench.databases()
    try:
        return measure(bench)
    except Unfinished as unfinished:
        kept, error = unfinished.section, unfinished.__cause__ or unfinished
    except Exception as failed:
        kept, error = Section(name, f"{name}: nothing was measured", []), failed
    traceback.print_exception(error, file=sys.stderr)
    # Otherwise the next measurement would find half of a database.
    bench.drop(*bench.databases() - before)
    return replace(kept, failed=in_one_line(error))


def in_one_line(error: BaseException) -> str:
    said = textwrap.shorten(" ".join(str(error).split()), LONGEST, placeholder=" …")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
