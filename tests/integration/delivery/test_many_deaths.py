"""Whole dispatchers, with all their threads, are killed again and again at random passages. No notification is lost.
One is sent twice only if its first dispatcher was killed between the provider's answer and the record.
"""

import itertools
import os
import random
import signal
import threading
from collections import defaultdict
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from uuid import UUID

from sqlalchemy import text

from app.db.database import Database
from app.db.wake import Announcer
from app.delivery.channels.base import OutgoingMessage
from app.delivery.channels.memory import MemoryChannel
from app.delivery.channels.registry import Channels
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.delivery.sending.channel_worker import ChannelWorkerOptions
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation import failpoints
from app.foundation.clock import DatabaseClock
from app.settings.settings import Settings
from tests.support.breakers import MemoryBreakers
from tests.support.delivery import add_user, post, statuses
from tests.support.depth import size
from tests.support.mishaps import CONTEXT, ForkedProcess

DEATHS = size(suite=12, deep=300)
SIDE_BY_SIDE = 3
PLACES = ("sql.statement", "sql.commit", "sql.committed", "delivery.claimed", "delivery.sent", "delivery.recording")
LEASE_S = 1.0


class RecordingProvider(MemoryChannel):
    """A provider that writes to a file which process sent which notification."""

    def __init__(self, path: Path) -> None:
        policy = RetryPolicy(timeout_s=0.1, retries=2)
        super().__init__(type_=NotificationType.WEBHOOK, policy=policy, needs_device=False, batch_size=3)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        for message in messages:
            os.write(self._file, f"{os.getpid()} {message.id} {message.notification.data['notificationId']}\n".encode())
        return [SendResult(Outcome.SENT)] * len(messages)


def work(settings: Settings, provider_log: Path, fault: str, done: Connection) -> None:
    """Runs a dispatcher until the fault kills it or, without a fault, until the pipe `done` gets an object."""
    place = fault.partition("=")[0]
    failpoints.arm(failpoints.parse(f"{place}=pause:0:0" if place else ""))
    db = Database(settings.database_url, pool_size=6)
    dispatcher = Dispatcher(
        db,
        DatabaseClock(db.now),
        Channels([RecordingProvider(provider_log)]),
        announcer=Announcer(settings.database_url),
        options=ChannelWorkerOptions(poll_s=0.05, lease_s=LEASE_S, claim_limit=7),
        types=[NotificationType.WEBHOOK],
        followers=FOLLOWERS,
        breakers=MemoryBreakers(),
    )
    db.now()
    failpoints.arm(failpoints.parse(fault))
    stop = threading.Event()
    threading.Thread(target=lambda: (done.recv(), stop.set()), daemon=True).start()
    dispatcher.run(stop)
    db.close()


class DispatcherProcess:
    def __init__(self, settings: Settings, provider_log: Path, fault: str) -> None:
        receiver, self._done = CONTEXT.Pipe(duplex=False)
        self._process = ForkedProcess(target=work, args=(settings, provider_log, fault, receiver), daemon=True)
        self._process.start()
        receiver.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def died(self, within_s: float) -> bool:
        self._process.join(within_s)
        assert self._process.exitcode in (None, -signal.SIGKILL), "the dispatcher ended without a kill"
        return self._process.exitcode is not None

    def end(self) -> None:
        self._done.send("stop")
        self._process.join(30)
        assert self._process.exitcode == 0


def test_many_killed_dispatchers_lose_nothing(db: Database, settings: Settings, tmp_path: Path) -> None:
    provider_log, rng, user_id = tmp_path / "provider_log", random.Random(2026), add_user(db)
    posted: list[UUID] = []
    killed: set[int] = set()
    processes: list[DispatcherProcess] = []
    places = itertools.cycle(PLACES)
    while len(killed) < DEATHS:
        while len(processes) < SIDE_BY_SIDE:
            processes.append(DispatcherProcess(settings, provider_log, f"{next(places)}=kill@{rng.randint(1, 12)}"))
        posted += post(db, [user_id] * 5, notification_type=NotificationType.WEBHOOK)
        for process in [process for process in processes if process.died(0.02)]:
            killed.add(process.pid)
            processes.remove(process)
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)
        assert process.died(10)
        killed.add(process.pid)
    _finish(db, settings, provider_log)

    assert statuses(db) == {"SENT": len(posted)}
    handed: dict[UUID, list[int]] = defaultdict(list)
    for line in provider_log.read_text().splitlines():
        pid, id_, given = line.split()
        assert id_ == given, "a repeated notification has another id"
        handed[UUID(id_)].append(int(pid))
    assert set(handed) == set(posted)
    for id_, pids in handed.items():
        assert all(pid in killed for pid in pids[:-1]), (
            f"{id_} was sent again although its first sender was not killed: {pids}"
        )
    assert any(len(pids) > 1 for pids in handed.values()), "no dispatcher was killed between an answer and its record"


def _finish(db: Database, settings: Settings, provider_log: Path) -> None:
    """Ends the leases of the killed dispatchers, and sends the rest with one that is not killed."""
    with db.transaction() as conn:
        conn.execute(text("UPDATE notifications SET due_at = clock_timestamp() WHERE status = 'SENDING'"))
    last = DispatcherProcess(settings, provider_log, "")
    while set(statuses(db)) != {"SENT"}:
        assert not last.died(0.05)
    last.end()
