"""`python -m app api`: HTTP in a few processes, each with an event loop and threads."""

import gc
import signal
from collections.abc import Callable, Sequence
from functools import partial
from socket import socket

from flask import Flask

from app.api.server import listen, serve
from app.cli.supervisor import run_supervisor
from app.foundation.loading import without_collections
from app.ops.shared_metrics import forget_gauges, shared_metrics
from app.settings.settings import Settings

BuildApp = Callable[[Settings, str], Flask]
"""Takes the settings and the folder of shared metrics. Runs after the fork."""
EXTRA_DRAIN_S = 1.0
"""A process may use all of DRAIN_S; `serve` waits another second."""


def main(settings: Settings, argv: Sequence[str] = ()) -> int:
    if argv:
        raise SystemExit("usage: python -m app api")
    with shared_metrics(settings) as directory:
        return run_workers(settings, directory, import_app())


def run_workers(settings: Settings, metrics_directory: str, build_app: BuildApp) -> int:
    try:
        listener = listen(settings)
    except OSError as error:
        raise SystemExit(
            f"HOST and PORT: {settings.host}:{settings.port} cannot be listened on: {error.strerror}"
        ) from None
    run = partial(_work, settings, metrics_directory, build_app, listener)
    # What is imported lives as long as its processes, and a collection that marks it would copy the shared memory.
    gc.freeze()
    return run_supervisor(
        {f"api-{number}": run for number in range(1, settings.api_workers + 1)},
        drain_s=settings.drain_s + EXTRA_DRAIN_S,
        on_end=partial(forget_gauges, metrics_directory),
        # Otherwise clients would connect to a port that nobody serves any more.
        before_drain=listener.close,
        # A role is killed with all its processes, which would keep its port.
        own_groups=False,
    )


def _work(settings: Settings, metrics_directory: str, build_app: BuildApp, listener: socket) -> int:
    # A terminal sends it to all processes of the role. Until the server handles it, only the supervisor does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    app = build_app(settings, metrics_directory)
    app.extensions["site"].start()
    try:
        serve(settings, app, listener)
    finally:
        app.extensions["site"].close()
    return 0


def import_app() -> BuildApp:
    """The imports are in here, because the metrics library reads the folder of shared metrics from the environment when
    it is imported. They are done once, before the fork, and the workers share their memory."""
    with without_collections():
        from app.bootstrap.api import create_app
        from app.bootstrap.build_services import build_services

    def build(settings: Settings, metrics_directory: str) -> Flask:
        """Processes must not share connections."""
        return create_app(build_services(settings, role="api"), metrics_directory=metrics_directory)

    return build
