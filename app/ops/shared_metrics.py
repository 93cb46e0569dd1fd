"""The folder in which processes add up their metrics, so that `/metrics` of the API tells of all roles beside it."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from app.settings.settings import Settings


@contextmanager
def shared_metrics(settings: Settings) -> Generator[str]:
    """The folder of the settings, or one of our own that goes with us. To be entered before anything that counts is
    imported: the library decides by the environment where it keeps its values."""
    if settings.prometheus_multiproc_dir is not None:
        yield settings.prometheus_multiproc_dir
        return
    directory = tempfile.mkdtemp(prefix="yaninda-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
    owner = os.getpid()
    try:
        yield directory
    finally:
        # Forks come through here too.
        if os.getpid() == owner:
            shutil.rmtree(directory, ignore_errors=True)
