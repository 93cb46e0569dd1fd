"""The parts of the role `api`."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from flask import Flask
from prometheus_client.registry import Collector
from werkzeug.routing import Map

from app.api.app import compile_map, flask_app
from app.api.auth import Doorkeeper, find_consumer_in, find_in
from app.api.docs import render
from app.api.identities import TokenVerifier
from app.api.openapi import describe, to_bytes
from app.api.routing import Route
from app.api.services import Services
from app.api.site import Site
from app.api.tokens import LocalTokens
from app.api.views.catalogue import ROUTES
from app.api.views.service import DOCUMENT, RENDERED
from app.bootstrap.job_catalogue import job_catalogue
from app.bootstrap.realtime import build_realtime
from app.console.page_routes import routes as pages
from app.delivery.service import watch_backlog
from app.jobs.service import figures_of
from app.ops.breaker_gauges import BreakerGauges
from app.ops.delivery_gauges import DeliveryGauges
from app.ops.health import Readiness
from app.ops.job_gauges import JobGauges
from app.ops.metrics import HttpMetrics
from app.ops.overdue_gauges import OverdueGauges
from app.ops.parts import Parts
from app.ops.roster_gauges import RosterGauges
from app.ops.service_level_gauges import ServiceLevelGauges
from app.ops.submission_counter import SubmissionCounter
from app.realtime.metrics import EventMetrics
from app.settings.settings import AuthMode, Settings, SettingsError

PAGES = pages.all


def create_app(
    services: Services,
    *,
    doorkeeper: Doorkeeper | None = None,
    routes: Sequence[Route] = ROUTES,
    metrics_directory: str | None = None,
) -> Flask:
    settings = services.settings
    documents, url_map = _catalogue() if routes is ROUTES else _served(routes)
    doorkeeper = doorkeeper or Doorkeeper(
        token_verifier(settings), find_in(services.deeds_db), find_consumer_in(services.db)
    )
    metrics = HttpMetrics(metrics_directory, _read_on_scrape(services))
    readiness = Readiness(services.db, services.clockwork, services.matching, settings.late_after_s)
    SubmissionCounter(metrics.registry).watch(services.db, services.deeds_db)
    site = Site(
        services=services,
        doorkeeper=doorkeeper,
        backlog=watch_backlog(services.db, settings.notification_backlog_limit),
        catalogue=job_catalogue(settings),
        readiness=readiness,
        parts=Parts(services.db, services.matching, services.breakers, readiness, settings.late_after_s),
        figures=figures_of(services.db),
        metrics=metrics,
        realtime=build_realtime(settings, doorkeeper.identify, EventMetrics(metrics.registry)),
        documents=documents,
    )
    return flask_app(site, [*routes, *PAGES], url_map)


@cache
def _catalogue() -> tuple[Callable[[], Mapping[str, bytes]], Map]:
    """Described and compiled once in a process: the routes are the same for every application that it makes."""
    return _served(ROUTES)


def _served(routes: Sequence[Route]) -> tuple[Callable[[], Mapping[str, bytes]], Map]:
    @cache
    def documents() -> Mapping[str, bytes]:
        document = describe(routes)
        return {DOCUMENT: to_bytes(document), RENDERED: render(document)}

    return documents, compile_map([*routes, *PAGES])


def _read_on_scrape(services: Services) -> list[Collector]:
    db = services.db
    return [
        OverdueGauges(services.matching),
        DeliveryGauges(db),
        JobGauges(db),
        RosterGauges(db),
        ServiceLevelGauges(db),
        BreakerGauges(services.breakers),
    ]


def token_verifier(settings: Settings) -> TokenVerifier:
    if settings.auth_mode is AuthMode.FIREBASE:
        assert settings.firebase_project_id is not None, "the settings require it"
        # Imported here because the library is large and most copies do not need it.
        from app.api.firebase import FirebaseTokens

        emulator = settings.firebase_auth_emulator_host is not None
        try:
            return FirebaseTokens(
                settings.firebase_project_id,
                emulator=emulator,
                tenant=settings.firebase_tenant_id,
                # An emulator knows none of the accounts of a project.
                credentials_path=None if emulator else settings.firebase_credentials,
            )
        except (OSError, ValueError) as error:
            raise SettingsError(f"FIREBASE_CREDENTIALS: cannot be used ({type(error).__name__})") from None
    assert settings.auth_secret is not None, "the settings require it"
    return LocalTokens(settings.auth_secret)
