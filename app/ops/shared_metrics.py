"""The folder of shared metrics: `/metrics` of the API adds up the files of all roles on this machine."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from app.settings.settings import Settings


@contextmanager
def shared_metrics(settings: Settings) -> Generator[str]:
    """The folder from the settings, or a temporary one that is removed at the end. Enter this before any metric is
    imported: the library reads the folder's name from the environment on import."""
    if settings.prometheus_multiproc_dir is not None:
        yield settings.prometheus_multiproc_dir
        return
    directory = tempfile.mkdtemp(prefix="yaninda-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
    owner = os.getpid()
    try:
        yield directory
    finally:
        # Forked children run this code too, and must not remove the folder.
        if os.getpid() == owner:
            shutil.rmtree(directory, ignore_errors=True)


def forget_gauges(directory: str, pid: int) -> None:
    """Removes the live gauges of a process that has ended."""
    for path in Path(directory).glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)
