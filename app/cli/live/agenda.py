"""What is to be done when. One thread does all of it, so that nobody does two things at once."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from app.cli.live.copy_client import CopyUnreachable
from app.foundation.loop import DoublingPause

Deed = Callable[[], None]
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0


@dataclass(order=True)
class Planned:
    due: float
    order: int
    deed: Deed = field(compare=False)
    again_s: Callable[[], float] | None = field(compare=False)
    """For what is done over and over: the time until then."""


class Agenda:
    def __init__(self, now: Callable[[], float], wait: Callable[[float], bool], say: Callable[[str], None]) -> None:
        """`wait` returns True, at once, when it is time to stop."""
        self._now = now
        self._wait = wait
        self._say = say
        self._planned: list[Planned] = []
        self._order = count()
        self._pause = DoublingPause(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._is_answering = True

    def after(self, seconds: float, deed: Deed) -> None:
        self._plan(seconds, deed, None)

    def every(self, again_s: Callable[[], float], deed: Deed) -> None:
        """For the first time at once."""
        self._plan(0.0, deed, again_s)

    def _plan(self, seconds: float, deed: Deed, again_s: Callable[[], float] | None) -> None:
        heapq.heappush(self._planned, Planned(self._now() + seconds, next(self._order), deed, again_s))

    def run(self) -> None:
        while self._planned and not self._wait(max(0.0, self._planned[0].due - self._now())):
            self._do(heapq.heappop(self._planned))

    def _do(self, planned: Planned) -> None:
        """What the copy did not answer is done again after a pause, and so is everything else that is due by then."""
        try:
            planned.deed()
        except CopyUnreachable as unreachable:
            self._complain(unreachable)
            heapq.heappush(self._planned, planned)
            self._wait(self._pause.next_s())
            return
        if not self._is_answering:
            self._say("The copy answers again.")
        self._is_answering = True
        self._pause.reset()
        if planned.again_s is not None:
            self._plan(planned.again_s(), planned.deed, planned.again_s)

    def _complain(self, unreachable: CopyUnreachable) -> None:
        if self._is_answering:
            self._say(f"The copy does not answer ({unreachable}); trying again until it does.")
        self._is_answering = False
