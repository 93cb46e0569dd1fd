"""The floor of `delivery-api`: the server of the api role around a Flask route that only inserts a notification.

python -m benchmarks.bare_api
"""

import json
from typing import Any

from flask import Flask, request
from psycopg_pool import ConnectionPool

from app.cli.run_api import BuildApp, run_workers
from app.foundation.ids import uuid7
from app.foundation.logs import configure_logs
from app.ops.shared_metrics import shared_metrics
from app.settings.settings import Settings, load_settings
from benchmarks.bench import OPTIONS

INSERT = """
INSERT INTO notifications (id, notification_type, recipient, subject, body, priority, metadata)
VALUES (%s, %s, %s, %s, %s, %s, '{}') RETURNING created_at, pg_notify('delivery', notification_type)
"""
FIELDS = ("notificationType", "recipient", "subject", "body", "priority")


class BareSite:
    """What the role starts and closes: here a pool."""

    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self._pool = pool

    def start(self) -> None:
        self._pool.open(wait=True)

    def close(self) -> None:
        self._pool.close()


def app_with_pool(settings: Settings, **connection: Any) -> tuple[Flask, ConnectionPool[Any]]:
    app = Flask("bare")
    pool = ConnectionPool(
        settings.database_url,
        min_size=settings.api_threads,
        kwargs={"autocommit": True, "options": OPTIONS} | connection,
        open=False,
    )
    app.extensions["site"] = BareSite(pool)

    @app.get("/readyz")
    def ready() -> str:
        return "ready"

    return app, pool


def bare_app(settings: Settings, _metrics_directory: str) -> Flask:
    app, pool = app_with_pool(settings, prepare_threshold=1)

    @app.post("/api/notifications")
    def submit() -> Any:
        body = json.loads(request.data)
        id_ = uuid7()
        with pool.connection() as conn:
            row: Any = conn.execute(INSERT, [id_, *(body[name] for name in FIELDS)]).fetchone()
        return {"id": str(id_), "status": "ACCEPTED", "submittedAt": row[0].isoformat()}, 202

    return app


def serve(build_app: BuildApp) -> None:
    settings = load_settings()
    configure_logs("INFO", False)
    with shared_metrics(settings) as directory:
        run_workers(settings, directory, build_app)


if __name__ == "__main__":
    serve(bare_app)
