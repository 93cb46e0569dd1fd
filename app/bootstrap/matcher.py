"""The parts of the role `matcher`."""

from dataclasses import dataclass
from typing import Protocol

from app.bootstrap.open_database import open_request_database
from app.db.database import Database
from app.matching.role import Matcher
from app.matching.service import Matching, matching_on
from app.ops.overdue_gauges import OverdueGauges
from app.ops.submission_counter import SubmissionCounter
from app.redis_store.contract import Clockwork
from app.redis_store.events import ExpiryEvents
from app.redis_store.store import connect
from app.settings.settings import Settings

_POOL = 4


class HasMatching(Protocol):
    @property
    def settings(self) -> Settings: ...
    @property
    def db(self) -> Database: ...
    @property
    def matching(self) -> Matching: ...


@dataclass(frozen=True)
class MatcherServices:
    """A part of the services of the api, whose other parts would load libraries that this role does not use."""

    settings: Settings
    db: Database
    clockwork: Clockwork
    matching: Matching

    def close(self) -> None:
        self.clockwork.close()
        self.db.close()


def open_matcher_services(settings: Settings) -> MatcherServices:
    db = open_request_database(settings, "matcher", _POOL, plan_once=True)
    clockwork = connect(settings.redis_url, pool_size=_POOL)
    return MatcherServices(settings, db, clockwork, matching_on(db, clockwork, settings))


def build_matcher(services: HasMatching) -> Matcher:
    events = ExpiryEvents(services.settings.redis_url)
    matcher = Matcher(services.settings, services.matching, events)
    matcher.metrics.registry.register(OverdueGauges(services.matching))
    SubmissionCounter(matcher.metrics.registry).watch(services.db)
    return matcher
