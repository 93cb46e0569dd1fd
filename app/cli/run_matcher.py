"""`python -m app matcher`: the process with the deadlines."""

import gc
import sys

import structlog

from app.bootstrap.build_services import build_services
from app.bootstrap.matcher import build_matcher
from app.cli.signals import stop_on_signals
from app.ops.metrics import serve_metrics
from app.settings.settings import Settings

log = structlog.get_logger(__name__)


def main(settings: Settings, _argv: list[str]) -> int:
    # Several threads share this interpreter. The one that handles deadlines waits for its turn after each of a dozen
    # answers from the stores, and should not wait the usual 5 ms.
    sys.setswitchinterval(0.0002)
    services = build_services(settings, role="matcher", pool_size=4, plan_once=True)
    matcher = build_matcher(services)
    stop = stop_on_signals()
    if settings.matcher_metrics_port:
        serve_metrics(settings, settings.matcher_metrics_port, matcher.metrics.registry)
    # What is loaded now stays for good: a garbage collection that looked through all of it would take as long as ten
    # batches.
    gc.collect()
    gc.freeze()
    matcher.start()
    log.info("matcher_started")
    while not stop.wait(1):
        if not matcher.is_whole():
            # A matcher without one of its threads looks alive and does not match; the supervisor starts another.
            log.critical("matcher_lost_a_thread")
            return 1
    matcher.stop()
    services.close()
    log.info("matcher_stopped")
    return 0
