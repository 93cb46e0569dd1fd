"""`python -m app api`: HTTP in a few processes, each with an event loop and threads."""

import gc
import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial
from socket import socket

from flask import Flask

from app.api.accepting import ConnectionShare, OpenConnections
from app.api.server import listen, serve
from app.cli.supervisor import run_supervisor
from app.foundation.garbage import look_for_garbage_seldom
from app.foundation.loading import lean_imports
from app.ops.shared_metrics import forget_gauges, shared_metrics
from app.settings.settings import Settings

BuildApp = Callable[[Settings, str], Flask]
"""Takes the settings and the folder of shared metrics. It runs before the fork, so it opens no connection and starts no
thread. `start` of the site does."""
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
    run = partial(_work, settings, build_app(settings, metrics_directory), listener)
    connections = OpenConnections(settings.api_workers)
    assert threading.active_count() == 1, "the application has started a thread, which a forked process does not have"
    # What is there lives as long as its processes, and a collection that marks it would copy the shared memory.
    gc.freeze()
    return run_supervisor(
        {f"api-{index + 1}": partial(run, connections.of_process(index)) for index in range(settings.api_workers)},
        drain_s=settings.drain_s + EXTRA_DRAIN_S,
        on_end=partial(forget_gauges, metrics_directory),
        # Otherwise clients would connect to a port that nobody serves any more.
        before_drain=listener.close,
        # A role is killed with all its processes, which would keep its port.
        own_groups=False,
    )


def _work(settings: Settings, app: Flask, listener: socket, share: ConnectionShare) -> int:
    # A terminal sends it to all processes of the role. Until the server handles it, only the supervisor does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    app.extensions["site"].start()
    look_for_garbage_seldom()
    try:
        serve(settings, app, listener, share)
    finally:
        app.extensions["site"].close()
    return 0


def import_app() -> BuildApp:
    """The imports are in here, because the metrics library reads the folder of shared metrics from the environment when
    it is imported."""
    # PyJWT loads it for signatures that local tokens do not have. What verifies Firebase's tokens is imported later.
    with lean_imports("cryptography"):
        from app.bootstrap.api import create_app
        from app.bootstrap.build_services import build_services

    def build(settings: Settings, metrics_directory: str) -> Flask:
        return create_app(build_services(settings, role="api"), metrics_directory=metrics_directory)

    return build
