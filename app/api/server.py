"""The role `api`: the application under gunicorn, with threads in a few processes."""

import os
import signal
from collections.abc import Callable
from typing import Any

import gunicorn.app.base  # pyright: ignore[reportMissingTypeStubs]
import structlog
from flask import Flask

from app.settings.settings import Settings

log = structlog.get_logger(__name__)

KEEP_ALIVE_S = 20
# A worker whose main loop stalls for this long is stuck. Slow requests do not stall it, because they run in threads.
STUCK_AFTER_S = 60

BuildApp = Callable[[Settings, str], Flask]
"""Takes the settings and the folder of shared metrics."""


class Server(gunicorn.app.base.BaseApplication):
    """`build_app` runs in each worker, after the fork."""

    def __init__(self, settings: Settings, metrics_directory: str, build_app: BuildApp) -> None:
        self.settings = settings
        self._metrics_directory = metrics_directory
        self._build_app = build_app
        self._app: Flask | None = None
        super().__init__()

    def load_config(self) -> None:
        settings = self.settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        options: dict[str, Any] = {
            "bind": f"{host}:{settings.port}",
            "workers": settings.api_workers,
            "threads": settings.api_threads,
            "worker_class": "app.api.gunicorn_worker.DrainingWorker",
            "graceful_timeout": settings.drain_s,
            "timeout": STUCK_AFTER_S,
            "keepalive": KEEP_ALIVE_S,
            "proc_name": "yaninda-api",
            # Its warnings quote malformed requests, which may hold personal data.
            "loglevel": "error",
            # Otherwise gunicorn opens a control socket in the home folder.
            "control_socket_disable": True,
            "post_worker_init": _leave_ctrl_c_to_the_arbiter,
            "when_ready": _drain_on_ctrl_c,
            "worker_exit": self._close,
            "child_exit": self._forget_metrics,
        }
        for name, value in options.items():
            self.cfg.set(name, value)  # pyright: ignore

    def load(self) -> Any:
        self._app = self._build_app(self.settings, self._metrics_directory)
        return self._app

    def _close(self, _arbiter: Any, _worker: Any) -> None:
        if self._app is not None:
            self._app.extensions["site"].close()

    def _forget_metrics(self, _arbiter: Any, worker: Any) -> None:
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid, self._metrics_directory)  # pyright: ignore


def _leave_ctrl_c_to_the_arbiter(_worker: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _drain_on_ctrl_c(_arbiter: Any) -> None:
    signal.signal(signal.SIGINT, lambda _number, _frame: os.kill(os.getpid(), signal.SIGTERM))
    log.info("api_listening")
