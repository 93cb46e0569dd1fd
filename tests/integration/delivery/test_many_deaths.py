"""Whole dispatchers, with all their threads, are killed again and again at random places. Nothing is lost, and what
arrives twice was in the hands of one that died between the provider's answer and our record.
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
from app.delivery.messages.retry import Result, RetryPolicy
from app.delivery.messages.values import NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.delivery.sending.channel_worker import ChannelWorkerOptions
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation import failpoints
from app.foundation.clock import DatabaseClock
from app.settings.settings import Settings
from tests.support.delivery import add_user, post, statuses
from tests.support.depth import size
from tests.support.mishaps import CONTEXT

DEATHS = size(suite=18, deep=300)
SIDE_BY_SIDE = 3
PLACES = ("sql.statement", "sql.commit", "sql.committed", "delivery.claimed", "delivery.sent", "delivery.recording")
LEASE_S = 1.0


class Diary(MemoryChannel):
    """The provider: it writes down, for good, who handed it which message."""

    def __init__(self, path: Path) -> None:
        policy = RetryPolicy(timeout_s=0.1, retries=2)
        super().__init__(type_=NotificationType.WEBHOOK, policy=policy, needs_device=False, batch_size=3)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[Result]:
        for message in messages:
            os.write(self._file, f"{os.getpid()} {message.id} {message.notification.data['notificationId']}\n".encode())
        return [Result(Outcome.SENT)] * len(messages)


def work(settings: Settings, diary: Path, fault: str, done: Connection) -> None:
    """Dispatches until it is killed by the fault or, without one, told to end."""
    place = fault.partition("=")[0]
    failpoints.arm(failpoints.parse(f"{place}=pause:0:0" if place else ""))
    db = Database(settings.database_url, pool_size=6)
    dispatcher = Dispatcher(
        db,
        DatabaseClock(db.now),
        Channels([Diary(diary)]),
        announcer=Announcer(settings.database_url),
        options=ChannelWorkerOptions(poll_s=0.05, lease_s=LEASE_S, claim_limit=7),
        types=[NotificationType.WEBHOOK],
        followers=FOLLOWERS,
    )
    db.now()
    failpoints.arm(failpoints.parse(fault))
    stop = threading.Event()
    threading.Thread(target=lambda: (done.recv(), stop.set()), daemon=True).start()
    dispatcher.run(stop)
    db.close()


class Life:
    def __init__(self, settings: Settings, diary: Path, fault: str) -> None:
        ear, self._mouth = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=work, args=(settings, diary, fault, ear), daemon=True)
        self._process.start()
        ear.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def died(self, within_s: float) -> bool:
        self._process.join(within_s)
        assert self._process.exitcode in (None, -signal.SIGKILL), "it ended by itself"
        return self._process.exitcode is not None

    def end(self) -> None:
        self._mouth.send("enough")
        self._process.join(30)
        assert self._process.exitcode == 0


def test_many_deaths_lose_nothing(db: Database, settings: Settings, tmp_path: Path) -> None:
    diary, chance, user_id = tmp_path / "diary", random.Random(2026), add_user(db)
    posted: list[UUID] = []
    killed: set[int] = set()
    alive: list[Life] = []
    places = itertools.cycle(PLACES)
    while len(killed) < DEATHS:
        while len(alive) < SIDE_BY_SIDE:
            alive.append(Life(settings, diary, f"{next(places)}=kill@{chance.randint(1, 12)}"))
        posted += post(db, [user_id] * 5, notification_type=NotificationType.WEBHOOK)
        for life in [life for life in alive if life.died(0.02)]:
            killed.add(life.pid)
            alive.remove(life)
    for life in alive:
        os.kill(life.pid, signal.SIGKILL)
        assert life.died(10)
        killed.add(life.pid)
    _finish(db, settings, diary)

    assert statuses(db) == {"SENT": len(posted)}
    handed: dict[UUID, list[int]] = defaultdict(list)
    for line in diary.read_text().splitlines():
        pid, id_, told = line.split()
        assert id_ == told, "the same message carries the same id"
        handed[UUID(id_)].append(int(pid))
    assert set(handed) == set(posted)
    for id_, pids in handed.items():
        assert all(pid in killed for pid in pids[:-1]), f"{id_} was handed over again by {pids}"
    assert any(len(pids) > 1 for pids in handed.values()), "no death came between an answer and its record"


def _finish(db: Database, settings: Settings, diary: Path) -> None:
    """A dispatcher that nobody kills deals with what is left, as soon as the leases of the dead end."""
    with db.transaction() as conn:
        conn.execute(text("UPDATE notifications SET due_at = clock_timestamp() WHERE status = 'SENDING'"))
    last = Life(settings, diary, "")
    while set(statuses(db)) != {"SENT"}:
        assert not last.died(0.05)
    last.end()
