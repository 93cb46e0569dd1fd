"""`python -m app delivery`: the process that sends notifications."""

import structlog

from app.bootstrap.delivery import build_channels, build_delivery
from app.bootstrap.open_database import open_delivery_database
from app.cli.signals import stop_on_signals
from app.foundation.clock import DatabaseClock
from app.foundation.garbage import look_for_garbage_seldom
from app.ops.metrics import serve_metrics
from app.settings.settings import Settings

log = structlog.get_logger(__name__)

WRONG_SETTINGS = 78
"""The exit code for unusable settings, the same for every command."""


def main(settings: Settings, _argv: list[str]) -> int:
    stop = stop_on_signals()
    db = open_delivery_database(settings)
    clock = DatabaseClock(db.now)
    try:
        channels = build_channels(settings, db, clock)
    except (OSError, ValueError) as error:
        # Only the name of the error: its text may quote the file, which holds a private key.
        kind = type(error).__name__
        log.critical("delivery_credentials_unusable", error_type=kind, hint="check FIREBASE_CREDENTIALS")
        return WRONG_SETTINGS
    role = build_delivery(settings, db, clock, channels)
    if settings.delivery_metrics_port:
        serve_metrics(settings, settings.delivery_metrics_port, role.dispatcher.metrics.registry)
    look_for_garbage_seldom()
    log.info("delivery_started", channels=[channel.name for channel in channels.all])
    role.run(stop)
    channels.close()
    db.close()
    return 0
