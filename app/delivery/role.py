"""`python -m app delivery`: the process that sends notifications."""

import signal
import threading
from types import FrameType

import structlog

from app.clock import Clock, DatabaseClock
from app.db import Database
from app.delivery.channels.base import Channel
from app.delivery.channels.fcm import FcmChannel
from app.delivery.channels.recording import RecordingChannel
from app.delivery.worker import Dispatcher, DispatcherOptions
from app.ops.metrics import serve_metrics
from app.settings import PushMode, Settings

log = structlog.get_logger(__name__)

# The exit code of a start with settings that cannot work, as everywhere in this application.
WRONG_SETTINGS = 78
# What is left of `drain_s` for the records and the way out.
_LEAVE_S = 8.0


def main(settings: Settings, argv: list[str]) -> int:
    stop = threading.Event()

    def drain(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, drain)
    # A claim, the records, the clock, and one for each thread where the channel writes to the database.
    db = Database(settings.database_url, pool_size=settings.delivery_threads + 3, application_name="yaninda-delivery")
    clock = DatabaseClock(db.now)
    try:
        channel = make_push_channel(settings, db, clock)
    except (OSError, ValueError) as error:
        # The name of the error only: its text may quote the file, which holds a private key.
        kind = type(error).__name__
        log.critical("delivery_credentials_unusable", error_type=kind, hint="check FIREBASE_CREDENTIALS")
        return WRONG_SETTINGS
    dispatcher = Dispatcher(db, clock, channel, database_url=settings.database_url, options=options(settings))
    if settings.delivery_metrics_port:
        serve_metrics(settings, settings.delivery_metrics_port, dispatcher.metrics.registry)
    log.info("delivery_started", push=settings.push.value, threads=settings.delivery_threads)
    try:
        dispatcher.run(stop)
    finally:
        channel.close()
        db.close()
    return 0


def options(settings: Settings) -> DispatcherOptions:
    return DispatcherOptions(
        threads=settings.delivery_threads,
        poll_s=settings.delivery_poll_s,
        drain_s=max(settings.drain_s - _LEAVE_S, 1.0),
    )


def make_push_channel(settings: Settings, db: Database, clock: Clock) -> Channel:
    if settings.push is PushMode.RECORDING:
        return RecordingChannel(db)
    assert settings.firebase_credentials is not None, "settings refuse PUSH=fcm without credentials"
    return FcmChannel(
        settings.firebase_credentials, clock, base_url=settings.fcm_base_url, connections=settings.delivery_threads
    )
