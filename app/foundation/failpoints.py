"""Failpoints: places where a test can kill or pause a process between two operations that belong together.

A passage is one call of `failpoint(place)`. `FAILPOINTS="press.committed=kill:0.02,send.sent=pause:0.1:3"` kills the
process with probability 0.02 at each passage of the first place, and pauses the thread for 3 s with probability 0.1 at
each passage of the second. `sql.statement=kill@7` kills the process at the seventh passage; `stop@7` stops it there
with SIGSTOP until it gets SIGCONT. The settings refuse failpoints in production. A failpoint that is not armed costs
one look-up in an empty dictionary, and nothing under `python -O`, which our image uses.
"""

import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Act(StrEnum):
    KILL = "kill"
    PAUSE = "pause"
    STOP = "stop"


@dataclass(frozen=True)
class Fault:
    act: Act
    probability: float
    seconds: float = 0.0
    passage: int = 0
    """Acts only at this passage; 0 means every passage."""


FAULT = re.compile(
    r"(?P<place>[a-z_.]+)=(?:kill:(?P<kill>[0-9.]+)|pause:(?P<pause>[0-9.]+):(?P<seconds>[0-9.]+)"
    r"|(?P<act>kill|stop)@(?P<passage>[1-9][0-9]*))"
)

_armed: dict[str, Fault] = {}
_passages: Counter[str] = Counter()


def parse(text: str) -> dict[str, Fault]:
    return dict(_fault(part.strip()) for part in text.split(",") if part.strip())


def _fault(part: str) -> tuple[str, Fault]:
    found = FAULT.fullmatch(part)
    if found is None:
        raise ValueError(
            f"{part!r} is not one of `place=kill:probability`, `place=pause:probability:seconds`, `place=kill@passage`"
            " and `place=stop@passage`"
        )
    if found["passage"] is not None:
        return found["place"], Fault(Act(found["act"]), 1.0, passage=int(found["passage"]))
    if found["kill"] is not None:
        return found["place"], Fault(Act.KILL, float(found["kill"]))
    return found["place"], Fault(Act.PAUSE, float(found["pause"]), float(found["seconds"]))


def arm(faults: Mapping[str, Fault]) -> None:
    _armed.clear()
    _passages.clear()
    _armed.update(faults)


def is_armed(place: str) -> bool:
    return __debug__ and place in _armed


def passages(place: str) -> int:
    """The number of passages of an armed place."""
    return _passages[place]


def failpoint(place: str) -> None:
    if __debug__ and _armed:
        act_at(place, _armed)


def act_at(
    place: str,
    armed: Mapping[str, Fault],
    *,
    chance: Callable[[], float] = random.random,
    pause: Callable[[float], None] = time.sleep,
    die: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGKILL),
    stop: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGSTOP),
) -> None:
    fault = armed.get(place)
    if fault is None:
        return
    _passages[place] += 1
    if fault.passage not in (0, _passages[place]) or chance() >= fault.probability:
        return
    # Unbuffered, because the process may be killed next. Monotonic time, because tests change the wall clock.
    line = f"failpoint {fault.act.value} {place} at {time.monotonic():.3f} for {fault.seconds} s\n"
    os.write(2, line.encode())
    if fault.act is Act.KILL:
        die()
    elif fault.act is Act.STOP:
        stop()
    else:
        pause(fault.seconds)
