"""`python -m app delivery`: the process that sends notifications."""

import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import FrameType

import structlog

from app.clock import Clock, DatabaseClock
from app.db import Database
from app.delivery.actions.conductor import Conductor
from app.delivery.actions.desk import ActionRules
from app.delivery.actions.intake import open_intake
from app.delivery.actions.publisher import open_publisher
from app.delivery.alarm import Alarm
from app.delivery.channels.registry import Channels, Wiring, open_channels
from app.delivery.lane import LaneOptions
from app.delivery.wake import ACTION_TOPIC, EVENT_TOPIC, Bell, Listener
from app.delivery.worker import Dispatcher
from app.ops.metrics import serve_metrics
from app.redis_store.breakers import Breakers, RedisBreakers
from app.redis_store.client import open_client
from app.settings import Settings

log = structlog.get_logger(__name__)

# The exit code of a start with settings that cannot work, as everywhere in this application.
WRONG_SETTINGS = 78
# What is left of `drain_s` for the records and the way out.
_LEAVE_S = 5.0
# Of the rest, so much is for finishing what is being sent: 30 s of 40.
_PATIENT_SHARE = 0.75
# Connections for the lanes' claims, the recorder, the clock and the companions, few of which work at the same time.
_POOL = 12


def main(settings: Settings, argv: list[str]) -> int:
    stop = threading.Event()

    def drain(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, drain)
    # Claims and records are short; what channels of our own write, each of their threads writes by itself.
    db = Database(
        settings.database_url,
        pool_size=_POOL + 3 * settings.notification_queue_consumer_threads,
        application_name="yaninda-delivery",
    )
    clock = DatabaseClock(db.now)
    try:
        channels = open_channels(Wiring(settings, db, clock))
    except (OSError, ValueError) as error:
        # The name of the error only: its text may quote the file, which holds a private key.
        kind = type(error).__name__
        log.critical("delivery_credentials_unusable", error_type=kind, hint="check FIREBASE_CREDENTIALS")
        return WRONG_SETTINGS
    breakers = RedisBreakers(open_client(settings.redis_url))
    with companions(settings, db, stop) as listeners:
        dispatcher = make_dispatcher(settings, db, clock, channels, breakers, listeners)
        if settings.delivery_metrics_port:
            serve_metrics(settings, settings.delivery_metrics_port, dispatcher.metrics.registry)
        log.info("delivery_started", channels=[channel.name for channel in channels.all])
        dispatcher.run(stop)
    channels.close()
    breakers.close()
    db.close()
    return 0


@contextmanager
def companions(settings: Settings, db: Database, stop: threading.Event) -> Generator[list[Listener]]:
    """What runs beside the lanes: actions are taken in and brought on, results are published, and somebody watches
    what piles up. What it yields wakes them."""
    bell = Bell()
    intake = open_intake(db, settings)
    publisher = open_publisher(db, settings)
    conductor = Conductor(db, ActionRules.from_settings(settings), bell.wait)
    alarm = Alarm(db, settings.dead_letter_alarm)
    threads = [
        threading.Thread(target=one.run, args=(stop,), name=type(one).__name__.lower(), daemon=True)
        for one in (intake, publisher, conductor, alarm)
    ]
    for thread in threads:
        thread.start()
    try:
        yield [Listener(ACTION_TOPIC, bell.ring), Listener(EVENT_TOPIC, publisher.wake)]
    finally:
        stop.set()
        bell.ring()
        for thread in threads:
            thread.join(_LEAVE_S)
        intake.close()
        publisher.close()


def make_dispatcher(
    settings: Settings,
    db: Database,
    clock: Clock,
    channels: Channels,
    breakers: Breakers,
    listeners: Sequence[Listener] = (),
) -> Dispatcher:
    leaving_s = max(settings.drain_s - _LEAVE_S, 1.0)
    return Dispatcher(
        db,
        clock,
        channels,
        database_url=settings.database_url,
        breakers=breakers,
        listeners=listeners,
        drain_s=leaving_s * _PATIENT_SHARE,
        abort_s=leaving_s * (1 - _PATIENT_SHARE),
        options=LaneOptions(
            capacity=settings.notification_queue_capacity,
            threads=settings.notification_queue_consumer_threads,
            poll_s=settings.delivery_poll_s,
            max_age_s=settings.notification_max_age_s,
        ),
    )
