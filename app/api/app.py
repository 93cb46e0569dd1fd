"""The Flask application: it registers the routes of the catalogue and adds the common headers to every response."""

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from functools import cache

import structlog
from flask import Flask, g, request
from prometheus_client.registry import Collector
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Response

from app.api.auth import Doorkeeper, TokenVerifier, find_in
from app.api.catalogue import ROUTES
from app.api.dispatch import handler
from app.api.docs import render
from app.api.errors import problem, problem_of_fault, problem_of_http_error
from app.api.load import admit, leave
from app.api.openapi import describe, to_bytes
from app.api.routing import Route
from app.api.services import Services
from app.api.site import Site
from app.api.tokens import LocalTokens
from app.api.views.service import DOCUMENT, RENDERED
from app.delivery.service import watch_backlog
from app.foundation.errors import AppError
from app.ops.breaker_gauges import BreakerGauges
from app.ops.dead_letter_gauges import DeadLetterGauges
from app.ops.health import Readiness
from app.ops.metrics import HttpMetrics
from app.ops.overdue_gauges import OverdueGauges
from app.ops.service_level_gauges import ServiceLevelGauges
from app.settings.settings import AuthMode, Settings

log = structlog.get_logger(__name__)

REQUEST_ID = "X-Request-Id"
_VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

SECURITY_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
QUIET_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Machines call these every few seconds. The calls are counted but not logged."""


def create_app(
    services: Services,
    *,
    doorkeeper: Doorkeeper | None = None,
    routes: Sequence[Route] = ROUTES,
    metrics_directory: str | None = None,
) -> Flask:
    settings = services.settings
    site = Site(
        services=services,
        doorkeeper=doorkeeper or Doorkeeper(token_verifier(settings), find_in(services.db)),
        backlog=watch_backlog(services.db, settings.notification_backlog_limit),
        readiness=Readiness(services.db, services.clockwork, services.matching, settings.late_after_s),
        metrics=HttpMetrics(metrics_directory, _read_on_scrape(services)),
        pages=_catalogue_pages() if routes is ROUTES else _pages(routes),
    )
    app = Flask("yaninda", static_folder=None, template_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.url_map = _catalogue_map() if routes is ROUTES else _url_map(routes)
    app.view_functions |= {route.name: handler(route, site) for route in routes}
    _observe(app, site.metrics)
    app.before_request(lambda: _admit(settings))
    app.teardown_request(leave)
    app.register_error_handler(AppError, problem)
    app.register_error_handler(HTTPException, problem_of_http_error)
    app.register_error_handler(Exception, problem_of_fault)
    app.extensions["site"] = site
    return app


# Described and compiled once in a process: the routes are the same for every application that it makes.
@cache
def _catalogue_pages() -> Mapping[str, bytes]:
    return _pages(ROUTES)


@cache
def _catalogue_map() -> Map:
    return _url_map(ROUTES)


def _url_map(routes: Sequence[Route]) -> Map:
    # A path with doubled slashes is answered with 404, not with a redirect.
    return Map([Rule(route.rule, methods=[route.method], endpoint=route.name) for route in routes], merge_slashes=False)


def _pages(routes: Sequence[Route]) -> Mapping[str, bytes]:
    document = describe(routes)
    return {DOCUMENT: to_bytes(document), RENDERED: render(document)}


def _read_on_scrape(services: Services) -> list[Collector]:
    db = services.db
    return [
        OverdueGauges(services.matching),
        DeadLetterGauges(db),
        ServiceLevelGauges(db),
        BreakerGauges(services.breakers),
    ]


def token_verifier(settings: Settings) -> TokenVerifier:
    if settings.auth_mode is AuthMode.FIREBASE:
        assert settings.firebase_project_id is not None, "the settings require it"
        # Imported here because the library is large and most copies do not need it.
        from app.api.firebase import FirebaseTokens

        emulator = settings.firebase_auth_emulator_host is not None
        return FirebaseTokens(settings.firebase_project_id, emulator=emulator)
    assert settings.auth_secret is not None, "the settings require it"
    return LocalTokens(settings.auth_secret)


def _admit(settings: Settings) -> None:
    # Health checks and metrics are answered even when the copy is overloaded.
    queue_limit_s = None if request.path in QUIET_ROUTES else settings.queue_limit_s
    admit(queue_limit_s, settings.request_timeout_s)


def _observe(app: Flask, metrics: HttpMetrics) -> None:
    def begin() -> None:
        given = request.headers.get(REQUEST_ID, "")
        g.request_id = given if _VALID_REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        g.started = time.perf_counter()
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=g.request_id)

    def finish(response: Response) -> Response:
        headers = response.headers
        if "Content-Security-Policy" not in headers:
            headers.add("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
        for name, value in SECURITY_HEADERS:
            headers.add(name, value)
        headers.add(REQUEST_ID, g.request_id)
        # The route's pattern, never the path: a path holds ids, and an unknown path may hold personal data.
        route = request.url_rule.rule if request.url_rule else "unknown"
        seconds = time.perf_counter() - g.started
        metrics.count(request.method if request.url_rule else "-", route, response.status_code, seconds)
        if route not in QUIET_ROUTES:
            log.info(
                "request", method=request.method, route=route, status=response.status_code, ms=round(seconds * 1000, 1)
            )
        return response

    app.before_request(begin)
    app.after_request(finish)
