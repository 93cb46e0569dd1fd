"""Places where a test may make a process die or stand still, between two steps that belong together.

`FAILPOINTS="press.committed=kill:0.02,send.sent=pause:0.1:3"` kills the process at one in fifty passages of the
first place, and makes one thread in ten stand still for three seconds at the second. Unarmed, as production insists,
a failpoint is one look at an empty dictionary; `python -O` leaves not even that.
"""

import os
import random
import re
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Act(StrEnum):
    KILL = "kill"
    PAUSE = "pause"


@dataclass(frozen=True)
class Fault:
    act: Act
    probability: float
    seconds: float = 0.0


FAULT = re.compile(r"(?P<place>[a-z_.]+)=(?:kill:(?P<kill>[0-9.]+)|pause:(?P<pause>[0-9.]+):(?P<seconds>[0-9.]+))")

_armed: dict[str, Fault] = {}


def parse(text: str) -> dict[str, Fault]:
    return dict(_fault(part.strip()) for part in text.split(",") if part.strip())


def _fault(part: str) -> tuple[str, Fault]:
    found = FAULT.fullmatch(part)
    if found is None:
        raise ValueError(f"{part!r} is neither `place=kill:probability` nor `place=pause:probability:seconds`")
    if found["kill"] is not None:
        return found["place"], Fault(Act.KILL, float(found["kill"]))
    return found["place"], Fault(Act.PAUSE, float(found["pause"]), float(found["seconds"]))


def arm(faults: Mapping[str, Fault]) -> None:
    _armed.clear()
    _armed.update(faults)


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
) -> None:
    fault = armed.get(place)
    if fault is None or chance() >= fault.probability:
        return
    # Straight to the file, because nothing that is buffered outlives the next line.
    os.write(2, f"failpoint {fault.act.value} {place}\n".encode())
    if fault.act is Act.KILL:
        die()
    else:
        pause(fault.seconds)
