"""Runs one operation of the service in its own process, which is killed or stopped at a failpoint of the test."""

import multiprocessing
import multiprocessing.process
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import forkserver, popen_forkserver
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
from app.realtime.event_clock import EventClock
from app.realtime.fan_out import FanOut
from app.realtime.live_events import LiveEvents
from app.realtime.metrics import EventMetrics
from app.roster import service as roster
from app.roster.contract import RunReport
from app.roster.kinds import elder_list
from app.settings.settings import Settings
from app.users.models import Caller
from tests.support.breakers import MemoryBreakers
from tests.support.jobs import runner_on

# Forks from a server process without threads and connections, which the process of the tests has. It is not the one
# that multiprocessing shares: an engine of jobs would have started that one without our modules, and every operation
# would import them again.
CONTEXT = multiprocessing.get_context("forkserver")
SERVER = forkserver.ForkServer()
SERVER.set_forkserver_preload(["tests.support.mishaps"])
PATIENCE_S = 30


def sync_roster(services: Services) -> RunReport:
    return roster.sync(services.db, services.matching, services.settings, (), dry_run=False, step=lambda *_: None)


def do(services: Services, operation: str, caller: Caller, task_id: UUID | None, key: str) -> None:
    """Runs the operation in this process: without a fault, or as the retry of an interrupted one."""
    matching = services.matching
    if operation == "create":
        matching.press(caller, NewTask(caller.id), key)
        return
    if operation == "deliver":
        url = services.settings.database_url
        channels = Channels([RecordingChannel(services.db)])
        Dispatcher(
            services.db,
            services.clock,
            channels,
            announcer=Announcer(url),
            types=[NotificationType.PUSH],
            followers=FOLLOWERS,
            breakers=MemoryBreakers(),
        ).run_once()
        return
    if operation == "run_jobs":
        one = runner_on(services.db, at_once=True)
        one.runner.claim_once()
        one.wait_until_recorded()
        one.runner.drain(0)
        return
    if operation == "sync_roster":
        sync_roster(services)
        return
    if operation == "give_positions":
        LiveEvents(
            services.db, FanOut(most_streams=1, most_per_person=1), EventClock(), lambda _: None, EventMetrics()
        ).catch_up()
        return
    if operation == "apply_elders":
        roster.apply_people(services.db, matching, elder_list.KIND)
        return
    if operation in ("conduct", "take_in", "publish"):
        _do_action_work(services, operation)
        return
    assert task_id is not None
    if operation == "expire":
        matching.runner.advance([task_id], skip_locked=True)
    else:
        getattr(matching, operation)(caller, task_id)


def _do_action_work(services: Services, operation: str) -> None:
    settings = services.settings
    match operation:
        case "conduct":
            Conductor(services.db, DeliveryRules.from_settings(settings)).run_once()
        case "publish":
            build_publisher(settings, services.db).run_once()
        case _:
            build_intake(settings, services.db, block_s=0.05).run_once()


def _run(settings: Settings, fault: str, results: Any, *what: Any) -> None:
    place = fault.partition("=")[0]
    # The engine registers its failpoints only if they are armed when it is made. A pause of 0 s does nothing.
    failpoints.arm(failpoints.parse(f"{place}=pause:0:0"))
    services = build_services(settings, pool_size=2)
    services.clock.now()
    failpoints.arm(failpoints.parse(fault))
    try:
        do(services, *what)
    except AppError as error:
        results.send(Outcome(refused=error.code))
    else:
        results.send(Outcome(passages=failpoints.passages(place)))
    services.close()


class _Fork(popen_forkserver.Popen):
    def _launch(self, process_obj: Any) -> None:
        shared = forkserver.connect_to_new_process
        forkserver.connect_to_new_process = SERVER.connect_to_new_process
        try:
            super()._launch(process_obj)
        finally:
            forkserver.connect_to_new_process = shared


class ForkedProcess(multiprocessing.process.BaseProcess):
    """Begins without importing anything, in a few milliseconds."""

    _start_method = "forkserver"

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _Fork(process_obj)


@dataclass(frozen=True)
class Outcome:
    died: bool = False
    refused: str | None = None
    passages: int = 0
    """How often the operation passed the failpoint."""


class Step:
    def __init__(self, settings: Settings, fault: str, *what: Any) -> None:
        self._results, sender = CONTEXT.Pipe(duplex=False)
        self._process = ForkedProcess(target=_run, args=(settings, fault, sender, *what), daemon=True)
        self._process.start()
        sender.close()

    def end(self) -> Outcome:
        self._process.join(PATIENCE_S)
        assert not self._process.is_alive(), f"the operation did not end within {PATIENCE_S} s"
        if self._process.exitcode == -signal.SIGKILL:
            return Outcome(died=True)
        assert self._process.exitcode == 0, "the operation failed although it was not killed"
        return self._results.recv()

    @contextmanager
    def standing_still(self) -> Iterator[bool]:
        """Waits until the operation is stopped or has ended; yields whether it is stopped. Resumes it afterwards."""
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
