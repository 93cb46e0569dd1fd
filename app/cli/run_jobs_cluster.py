"""`python -m app cluster scheduler | worker | certificates FOLDER`: the machines that run jobs together."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from app.bootstrap.jobs import engine_options
from app.cli.command import fail
from app.settings.settings import Settings

USAGE = "usage: python -m app cluster scheduler | worker | certificates FOLDER"
Serve = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


def main(settings: Settings, argv: list[str]) -> int:
    try:
        # Here, because the packages of the cluster are installed only where one is used.
        import app.bootstrap.jobs_cluster as cluster
    except ModuleNotFoundError as error:
        return fail(f"The package {error.name} is missing: install requirements-cluster.lock.")
    try:
        match argv:
            case ["scheduler"]:
                return asyncio.run(_until_stopped(lambda stop: cluster.run_cluster_scheduler(settings, stop)))
            case ["worker"]:
                options = engine_options(settings)
                return asyncio.run(_until_stopped(lambda stop: cluster.run_cluster_worker(settings, options, stop)))
            case ["certificates", folder]:
                cluster.make_cluster_certificates(folder)
                print(f"Made {folder}. Copy it to every machine of the cluster, and let nobody else read it.")
                return 0
            case _:
                print(USAGE, file=sys.stderr)
                return 2
    except OSError as error:
        return fail(f"{error.strerror}: {error.filename}" if error.filename else str(error))


async def _until_stopped(serve: Serve) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(stop)
    return 0
