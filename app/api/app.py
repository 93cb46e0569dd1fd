"""The Flask application: it serves the routes, and adds the common headers to every response."""

import re
import secrets
import time
from collections.abc import Sequence

import structlog
from flask import Flask, g, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Response

from app.api.dispatch import handler
from app.api.errors import RouteUnknown, problem, problem_of_fault, problem_of_http_error
from app.api.load import admit, leave
from app.api.routing import Route
from app.api.site import Site
from app.foundation.errors import AppError
from app.ops.metrics import HttpMetrics
from app.settings.settings import Settings

log = structlog.get_logger(__name__)

REQUEST_ID = "X-Request-Id"
_VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

SECURITY_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
HEALTH_ROUTES = frozenset({"/healthz", "/readyz"})
"""Answered even when the copy is overloaded, because whoever asks would stop it otherwise."""
QUIET_ROUTES = HEALTH_ROUTES | {"/metrics"}
"""Machines call these every few seconds. The calls are counted but not logged."""
# Of a path: empty and dotted segments, backslashes, what must not be encoded at all (RFC 3986, 6.2.2.2), and encoded
# slashes and control characters.
_ANOTHER_SPELLING = re.compile(
    r"//|/\.\.?(?=/|$)|\\|^[^/]|#"
    r"|%(?:[01].|2[DEF]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5[CF]|7[EF])",
    re.IGNORECASE,
)


def flask_app(site: Site, routes: Sequence[Route], url_map: Map) -> Flask:
    settings = site.services.settings
    app = Flask("yaninda", static_folder=None, template_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.url_map = url_map
    app.view_functions |= {route.name: handler(route, site) for route in routes}
    _observe(app, site.metrics)
    app.before_request(lambda: _admit(settings))
    app.teardown_request(leave)
    app.register_error_handler(AppError, problem)
    app.register_error_handler(HTTPException, problem_of_http_error)
    app.register_error_handler(Exception, problem_of_fault)
    app.extensions["site"] = site
    return app


def compile_map(routes: Sequence[Route]) -> Map:
    # A path with doubled slashes is answered with 404, not with a redirect.
    return Map([Rule(route.rule, methods=[route.method], endpoint=route.name) for route in routes], merge_slashes=False)


def _admit(settings: Settings) -> None:
    queue_limit_s = None if request.path in HEALTH_ROUTES else settings.queue_limit_s
    admit(queue_limit_s, settings.request_timeout_s)
    # A proxy that filters by path must not see another one than we do.
    path, _, _ = str(request.environ.get("REQUEST_URI", "/")).partition("?")
    if _ANOTHER_SPELLING.search(path):
        raise RouteUnknown("There is nothing at this path.")


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
            headers.setdefault(name, value)
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
