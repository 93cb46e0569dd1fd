"""One step of the service in a process of its own, which dies or is stopped at a place that the test names."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from app.api.services import Services
from app.bootstrap.build_services import build_services
from app.bootstrap.delivery import build_intake, build_publisher
from app.db.wake import Announcer
from app.delivery.actions.conductor import Conductor
from app.delivery.channels.recording import RecordingChannel
from app.delivery.channels.registry import Channels
from app.delivery.messages.rules import DeliveryRules
from app.delivery.messages.values import NotificationType
from app.delivery.role import FOLLOWERS
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation import failpoints
from app.foundation.errors import AppError
from app.matching.contract import NewTask
from app.settings.settings import Settings
from app.users.models import Caller

# Forks of a process that has no threads and no connections, unlike the one that runs the tests.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.support.mishaps"])
PATIENCE_S = 30


def do(services: Services, word: str, caller: Caller, task_id: UUID | None, key: str) -> None:
    """What the step does where nothing happens to it, and what people's phones do again where it was cut short."""
    matching = services.matching
    if word == "create":
        matching.press(caller, NewTask(caller.id), key)
        return
    if word == "deliver":
        url = services.settings.database_url
        channels = Channels([RecordingChannel(services.db)])
        Dispatcher(
            services.db,
            services.clock,
            channels,
            announcer=Announcer(url),
            types=[NotificationType.PUSH],
            followers=FOLLOWERS,
        ).run_once()
        return
    if word in ("conduct", "take_in", "publish"):
        _carry_out(services, word)
        return
    assert task_id is not None
    if word == "expire":
        matching.runner.advance([task_id], skip_locked=True)
    else:
        getattr(matching, word)(caller, task_id)


def _carry_out(services: Services, word: str) -> None:
    settings = services.settings
    match word:
        case "conduct":
            Conductor(services.db, DeliveryRules.from_settings(settings)).run_once()
        case "publish":
            build_publisher(settings, services.db).run_once()
        case _:
            build_intake(settings, services.db, block_s=0.05).run_once()


def _step(settings: Settings, fault: str, told: Any, *what: Any) -> None:
    place = fault.partition("=")[0]
    # Armed before the engine is made, which listens only then; but nothing happens while it is.
    failpoints.arm(failpoints.parse(f"{place}=pause:0:0"))
    services = build_services(settings, pool_size=2)
    services.clock.now()
    failpoints.arm(failpoints.parse(fault))
    try:
        do(services, *what)
    except AppError as error:
        told.send(Outcome(refused=error.code))
    else:
        told.send(Outcome(passages=failpoints.passages(place)))
    services.close()


@dataclass(frozen=True)
class Outcome:
    died: bool = False
    refused: str | None = None
    passages: int = 0
    """How often it came to the place."""


class Step:
    def __init__(self, settings: Settings, fault: str, *what: Any) -> None:
        self._ear, mouth = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_step, args=(settings, fault, mouth, *what), daemon=True)
        self._process.start()
        mouth.close()

    def end(self) -> Outcome:
        self._process.join(PATIENCE_S)
        assert not self._process.is_alive(), "the step hangs"
        if self._process.exitcode == -signal.SIGKILL:
            return Outcome(died=True)
        assert self._process.exitcode == 0, "a step that was not cut short fails"
        return self._ear.recv()

    @contextmanager
    def standing_still(self) -> Iterator[bool]:
        """Whether it came to the place where it stops; it goes on afterwards."""
        pid = self._process.pid
        assert pid is not None
        while self._process.is_alive() and not _is_stopped(pid):
            self._process.join(0.005)
        try:
            yield self._process.is_alive()
        finally:
            if self._process.is_alive():
                os.kill(pid, signal.SIGCONT)


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False
