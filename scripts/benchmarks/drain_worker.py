"""A delivery worker with one channel that does nothing, so that only the queue is measured.

    python -m benchmarks.drain_worker FILE THREADS GROUP_S

At its end it writes to FILE the id of each message handed to the channel, as often as it was handed over.
"""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from app.db.database import Database
from app.db.wake import Announcer
from app.delivery.channels.base import OutgoingMessage, SingleProvider
from app.delivery.channels.registry import Channels
from app.delivery.channels.sms_gateway import POLICY
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.delivery.sending.channel_worker import ChannelWorkerOptions
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation.clock import DatabaseClock
from app.foundation.garbage import look_for_garbage_seldom
from app.foundation.logs import configure_logs
from app.redis_store.breakers import RedisBreakers
from app.redis_store.client import open_client

SENT = SendResult(Outcome.SENT)


class NoOp(SingleProvider):
    def __init__(self) -> None:
        super().__init__("no_op", (NotificationType.SMS,), POLICY)
        self.handed: list[UUID] = []

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        self.handed.extend([message.id for message in messages])
        return [SENT] * len(messages)


def main(file: Path, threads: int, group_s: float) -> None:
    configure_logs("WARNING", False)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    # As in the delivery role.
    db = Database(os.environ["DATABASE_URL"], pool_size=10 + 3 * threads, application_name="yaninda-delivery")
    breakers = RedisBreakers(open_client(os.environ["REDIS_URL"]))
    channel = NoOp()
    dispatcher = Dispatcher(
        db,
        DatabaseClock(db.now),
        Channels([channel]),
        announcer=Announcer(os.environ["DATABASE_URL"]),
        options=ChannelWorkerOptions(threads=threads),
        types=[NotificationType.SMS],
        breakers=breakers,
        group_s=group_s,
        followers=FOLLOWERS,
    )
    # As in the delivery role.
    look_for_garbage_seldom()
    print("ready", flush=True)
    dispatcher.run(stop)
    file.write_text("".join(f"{id_}\n" for id_ in channel.handed))
    breakers.close()
    db.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
