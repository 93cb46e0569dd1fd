"""Failpoints: places in the code where a test can kill, stop or pause a process."""

import re
import sys
from collections.abc import Iterator
from types import FrameType

import pytest

from app.foundation import failpoints
from app.foundation.failpoints import Act, Fault, act_at, failpoint, parse
from app.settings.settings import SettingsError, load_settings
from tests.unit.test_settings import GOOD, PRODUCTION


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.arm({})


def test_failpoints_are_parsed() -> None:
    assert parse("press.committed=kill:0.02, send.sent=pause:1:0.5") == {
        "press.committed": Fault(Act.KILL, 0.02),
        "send.sent": Fault(Act.PAUSE, 1.0, 0.5),
    }
    assert parse("sql.statement=kill@7,sql.commit=stop@1") == {
        "sql.statement": Fault(Act.KILL, 1.0, passage=7),
        "sql.commit": Fault(Act.STOP, 1.0, passage=1),
    }
    assert parse("") == {}


@pytest.mark.parametrize(
    "text", ["press", "press=kill", "press=die:1", "press=pause:1", "press=kill:often", "press=kill@0"]
)
def test_invalid_failpoints_end_the_start(text: str) -> None:
    with pytest.raises(SettingsError, match="FAILPOINTS"):
        load_settings(GOOD | {"FAILPOINTS": text})


def test_production_refuses_failpoints() -> None:
    with pytest.raises(SettingsError, match="FAILPOINTS"):
        load_settings(PRODUCTION | {"FAILPOINTS": "press.committed=kill:1"})


@pytest.mark.parametrize(("chance", "deaths"), [(0.19, 1), (0.2, 0), (0.9, 0)])
def test_process_dies_with_the_configured_chance(chance: float, deaths: int) -> None:
    died: list[str] = []
    armed = {"here": Fault(Act.KILL, 0.2)}
    act_at("here", armed, chance=lambda: chance, die=lambda: died.append("here"))
    assert len(died) == deaths


def test_thread_pauses_only_at_the_armed_failpoint() -> None:
    pauses: list[float] = []
    armed = {"here": Fault(Act.PAUSE, 1.0, 3.0)}
    act_at("there", armed, chance=lambda: 0.0, pause=pauses.append)
    assert pauses == []
    act_at("here", armed, chance=lambda: 0.0, pause=pauses.append)
    assert pauses == [3.0]


def test_process_dies_or_stops_at_the_configured_passage() -> None:
    happened: list[str] = []
    failpoints.arm(armed := parse("here=kill@3,there=stop@1"))
    for place in ("here", "here", "there", "here", "here", "there"):
        act_at(place, armed, die=lambda: happened.append("died"), stop=lambda: happened.append("stopped"))
    assert happened == ["stopped", "died"]
    assert (failpoints.passages("here"), failpoints.passages("there")) == (4, 2)
    failpoints.arm({})
    assert failpoints.passages("here") == 0


def test_only_armed_failpoints_act(capfd: pytest.CaptureFixture[str]) -> None:
    failpoints.arm(parse("here=pause:1:0"))
    failpoint("here")
    failpoints.arm({})
    failpoint("here")
    assert re.fullmatch(r"failpoint pause here at [0-9.]+ for 0.0 s\n", capfd.readouterr().err)


def test_unarmed_failpoint_calls_nothing() -> None:
    """Failpoints stand before every statement and commit, so an unarmed one only reads a variable and returns."""
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)
        elif event == "c_call" and argument is not sys.setprofile:
            called.append(str(argument))

    failpoints.arm({})
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        failpoint("here")
    finally:
        sys.setprofile(before)
    assert called == ["failpoint"]
