"""The scripts that this copy may run."""

from pathlib import Path

from app.jobs.catalogue import Catalogue
from app.settings.settings import Settings


def job_catalogue(settings: Settings) -> Catalogue:
    return Catalogue(Path(settings.jobs_dir) if settings.jobs_dir is not None else None)
