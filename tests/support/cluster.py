"""A cluster on this machine: a scheduler and workers, each a process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from machine.processes import free_port

from app.jobs.cluster.dask_engine import DaskEngine, DaskOptions
from app.jobs.cluster.tls_files import TlsFiles, make_certificates
from app.jobs.engine.engine import EngineHealth, EngineListener
from app.jobs.engine.options import EngineOptions

ROOT = Path(__file__).parents[2]
READY_WITHIN_S = 30.0


class Cluster:
    def __init__(
        self,
        folder: Path,
        options: EngineOptions,
        workers: int = 2,
        *,
        worker_lost_s: float = 40,
        lease_s: float = 20,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.tls: TlsFiles = make_certificates(folder / "tls")
        self.port = free_port()
        self.address = f"tls://127.0.0.1:{self.port}"
        self._options = options
        self._worker_lost_s = worker_lost_s
        self._lease_s = lease_s
        self._environment = {**os.environ, **(environment or {})}
        self.scheduler = self.start_scheduler()
        self.workers = [self.start_worker() for _ in range(workers)]

    def start_scheduler(self) -> "subprocess.Popen[bytes]":
        self.scheduler = self._start("scheduler", worker_lost_s=self._worker_lost_s)
        return self.scheduler

    def start_worker(self, options: EngineOptions | None = None, drain_s: float = 0.0) -> "subprocess.Popen[bytes]":
        return self._start("worker", options=asdict(options or self._options), drain_s=drain_s, lease_s=self._lease_s)

    def _start(self, role: str, **values: Any) -> "subprocess.Popen[bytes]":
        given = {"folder": str(self.folder / "tls"), "port": self.port, **values}
        with (self.folder / f"{role}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.support.cluster_process", role, json.dumps(given)],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def engine(
        self, listener: EngineListener | None = None, *, workers: int | None = None, **options: Any
    ) -> DaskEngine:
        """Connected, and with so many workers."""
        known = {"worker_lease_s": self._lease_s} | options
        engine = DaskEngine(DaskOptions(self.address, self.tls.security(), **known), listener)
        number = len(self.workers) if workers is None else workers
        give_up = time.monotonic() + READY_WITHIN_S
        while engine.status().health is not EngineHealth.RUNNING or self.connected_workers(engine) < number:
            assert time.monotonic() < give_up, self.printed()
            time.sleep(0.02)
        return engine

    @staticmethod
    def connected_workers(engine: DaskEngine) -> int:
        return sum(name.startswith("tls://") for name in engine.status().components)

    def printed(self) -> str:
        return "\n".join(f"{log.name}\n{log.read_text(errors='replace')}" for log in self.folder.glob("*.log"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        for process in (*self.workers, self.scheduler):
            process.send_signal(signal.SIGKILL)
            process.wait()
