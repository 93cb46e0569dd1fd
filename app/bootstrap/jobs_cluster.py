"""The engine that uses a cluster, and the two processes of the cluster. Needs the packages of the extra `cluster`."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from distributed import Security

from app.jobs.cluster.cluster_roles import serve_scheduler, serve_worker
from app.jobs.cluster.dask_engine import DaskEngine, DaskOptions
from app.jobs.cluster.tls_files import TlsFiles, make_certificates
from app.jobs.engine.engine import EngineListener
from app.jobs.engine.options import EngineOptions
from app.settings.engine_address import ClusterMisconfigured, parse_engine
from app.settings.settings import Settings


def open_dask_engine(
    settings: Settings, listener: EngineListener, options: EngineOptions, key_of: Callable[[str], str] = str
) -> DaskEngine:
    """`key_of` names the job of a task id, so that two processes that claim one job after the other share its run."""
    dask_options = DaskOptions(
        _address(settings), cluster_security(settings), options.input_capacity, options.results_kept, key_of
    )
    return DaskEngine(dask_options, listener)


def cluster_security(settings: Settings) -> Security:
    if settings.jobs_tls_dir is None:
        raise ClusterMisconfigured("JOBS_TLS_DIR is not set: make its folder by `python -m app cluster certificates`")
    try:
        return TlsFiles.of(Path(settings.jobs_tls_dir)).security()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ClusterMisconfigured(f"JOBS_TLS_DIR has no certificates that can be used: {reason}") from None


def make_cluster_certificates(folder: str) -> None:
    """Raises `OSError`, also if the folder has some."""
    make_certificates(Path(folder))


async def run_cluster_scheduler(settings: Settings, stop: asyncio.Event) -> None:
    _, port = _place(settings)
    await serve_scheduler(settings.jobs_cluster_host, port, cluster_security(settings), stop)


async def run_cluster_worker(settings: Settings, options: EngineOptions, stop: asyncio.Event) -> None:
    """`options` are those of an embedded engine: what this machine runs at once, and what its scripts may use."""
    await serve_worker(
        _address(settings),
        options,
        cluster_security(settings),
        stop,
        host=settings.jobs_cluster_host,
        drain_s=settings.drain_s,
    )


def _address(settings: Settings) -> str:
    host, port = _place(settings)
    return f"tls://{host}:{port}"


def _place(settings: Settings) -> tuple[str, int]:
    place = parse_engine(settings.jobs_engine)
    if place is None:
        raise ClusterMisconfigured("JOBS_ENGINE must be dask://host:port, the address of the cluster's scheduler")
    return place
