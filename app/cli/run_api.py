"""`python -m app api`: HTTP under gunicorn, with threads in a few processes."""

from collections.abc import Sequence

from flask import Flask

from app.api.server import BuildApp, Server
from app.foundation.loading import without_collections
from app.ops.shared_metrics import shared_metrics
from app.settings.settings import Settings


def main(settings: Settings, argv: Sequence[str] = ()) -> int:
    if argv:
        raise SystemExit("usage: python -m app api")
    with shared_metrics(settings) as directory:
        try:
            Server(settings, directory, import_app()).run()
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def import_app() -> BuildApp:
    """The imports are in here, because the metrics library reads the folder of shared metrics from the environment when
    it is imported. They are done once, before the fork, and the workers share their memory."""
    with without_collections():
        from app.bootstrap.api import create_app
        from app.bootstrap.build_services import build_services

    def build(settings: Settings, metrics_directory: str) -> Flask:
        """Runs in each worker after the fork, because processes must not share connections."""
        return create_app(build_services(settings, role="api"), metrics_directory=metrics_directory)

    return build
