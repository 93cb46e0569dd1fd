"""HTTP metrics for Prometheus, and `/metrics` for roles without an API. Processes add up their values in shared
files."""

import hmac
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from socketserver import ThreadingMixIn
from typing import Any, Final, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    exposition,
    generate_latest,
    multiprocess,
)
from prometheus_client.registry import Collector

from app.settings.settings import Settings

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
SHOWN_FOR_S = 1.0
CALLER_WITHIN_S = 2.0
"""How long a role without an API waits for a caller of its metrics."""
MOST_AT_ONCE = 16
"""The callers that it answers at once; more are cut off."""
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class HttpMetrics:
    """A process that is forked counts from 0, in files of its own."""

    def __init__(
        self,
        directory: str | None = None,
        read_on_scrape: Sequence[Collector] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._read_on_scrape = read_on_scrape
        self._clock = clock
        self._making = threading.Lock()
        self._text, self._made_at = b"", -math.inf
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("http_requests", "Requests answered.", labels, registry=self.registry)
        self._duration = Histogram(
            "http_request_duration_seconds", "Time to answer.", labels[:2], registry=self.registry, buckets=BUCKETS_S
        )

        # Cached, because finding a metric by its labels takes longer than counting. There are few combinations.
        self._found: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        key = (method, route, status)
        if key not in self._found:
            duration = self._duration.labels(method, route)
            self._found[key] = (self._requests.labels(method, route, str(status)), duration)
        requests, duration = self._found[key]
        requests.inc()
        duration.observe(seconds)

    def text(self) -> bytes:
        """Made at most once a second, because it takes up to a tenth of one. Who asks while it is made gets the one
        before, so that many who ask at once hold no threads."""
        if self._clock() - self._made_at >= SHOWN_FOR_S and self._making.acquire(blocking=not self._text):
            try:
                if self._clock() - self._made_at >= SHOWN_FOR_S:
                    self._text, self._made_at = self._make_text(), self._clock()
            finally:
                self._making.release()
        return self._text

    def _make_text(self) -> bytes:
        merged = CollectorRegistry()
        if self._directory is None:
            merged.register(self.registry)
        else:
            multiprocess.MultiProcessCollector(merged, path=self._directory)
        for collector in self._read_on_scrape:
            merged.register(collector)
        return generate_latest(merged)


def may_read_metrics(expected_token: str | None, authorization: str | None) -> bool:
    if expected_token is None:
        return True
    return hmac.compare_digest((authorization or "").encode(), f"Bearer {expected_token}".encode())


def serve_metrics(settings: Settings, port: int, registry: CollectorRegistry = REGISTRY) -> WSGIServer:
    """Serves `/metrics` for a role without an API. `shutdown()` of the returned server ends it."""
    show = cast(WSGIApplication, cast(Any, exposition).make_wsgi_app(registry))

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if may_read_metrics(settings.metrics_token, environ.get("HTTP_AUTHORIZATION")):
            return show(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Length", "0")])
        return []

    server = make_server(settings.host, port, guarded, server_class=_MetricsServer, handler_class=_MetricsHandler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


class _MetricsServer(ThreadingMixIn, WSGIServer):
    """A thread for each caller, so that a silent one hides the metrics from nobody."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *arguments: Any) -> None:
        self._room = threading.Semaphore(MOST_AT_ONCE)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who falls silent or leaves is no fault of ours. What fails in our own code, wsgiref reports."""


class _MetricsHandler(WSGIRequestHandler):
    timeout = CALLER_WITHIN_S

    def log_message(self, format: str, *args: object) -> None: ...
