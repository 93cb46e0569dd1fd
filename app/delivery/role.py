"""`python -m app delivery`: the process that sends notifications."""

import signal
import threading
from types import FrameType

import structlog

from app.clock import DatabaseClock
from app.db import Database
from app.delivery.channels.registry import Wiring, open_channels
from app.delivery.models import NotificationType
from app.delivery.worker import Dispatcher, DispatcherOptions
from app.ops.metrics import serve_metrics
from app.settings import Settings

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
    db = Database(
        settings.database_url,
        pool_size=settings.notification_queue_consumer_threads + 3,
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
    dispatcher = Dispatcher(
        db, clock, channels.find(NotificationType.PUSH), database_url=settings.database_url, options=options(settings)
    )
    if settings.delivery_metrics_port:
        serve_metrics(settings, settings.delivery_metrics_port, dispatcher.metrics.registry)
    log.info("delivery_started", push=settings.push.value)
    try:
        dispatcher.run(stop)
    finally:
        channels.close()
        db.close()
    return 0


def options(settings: Settings) -> DispatcherOptions:
    return DispatcherOptions(
        threads=settings.notification_queue_consumer_threads,
        poll_s=settings.delivery_poll_s,
        drain_s=max(settings.drain_s - _LEAVE_S, 1.0),
    )
