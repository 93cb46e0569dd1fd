"""`python -m app matcher`: the process that runs the cascade and acts on deadlines."""

import sys

import structlog

from app.bootstrap.matcher import build_matcher, open_matcher_services
from app.cli.signals import stop_on_signals
from app.foundation.garbage import look_for_garbage_seldom
from app.ops.metrics import serve_metrics
from app.settings.settings import Settings

log = structlog.get_logger(__name__)


def main(settings: Settings, _argv: list[str]) -> int:
    # Several threads share this interpreter. The thread that handles deadlines waits for the interpreter after each of
    # a dozen answers from the stores, and the usual switch interval of 5 ms is too long for that.
    sys.setswitchinterval(0.0002)
    services = open_matcher_services(settings)
    matcher = build_matcher(services)
    stop = stop_on_signals()
    if settings.matcher_metrics_port:
        serve_metrics(settings, settings.matcher_metrics_port, matcher.metrics.registry)
    look_for_garbage_seldom()
    matcher.start()
    log.info("matcher_started")
    while not stop.wait(1):
        if not matcher.is_whole():
            # A matcher that lost a thread looks alive but does not match, so it ends and the supervisor starts another.
            log.critical("matcher_lost_a_thread")
            return 1
    matcher.stop()
    services.close()
    log.info("matcher_stopped")
    return 0
