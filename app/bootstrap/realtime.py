"""The parts of streams of events, which each process of the api has."""

import time
from collections.abc import Callable

from app.api.stream_tokens import Identify, check_tokens_in
from app.db.database import Database
from app.db.wake import Announcer
from app.realtime.metrics import EventMetrics
from app.realtime.service import CHANNEL, Realtime, RealtimeRules
from app.redis_store.event_heads import EventHeads
from app.settings.settings import Settings

_POOL = 4
"""Live events, histories, checks. Their own, so that a press never waits for a stream."""


def build_realtime(
    settings: Settings, identify: Identify, metrics: EventMetrics, monotonic: Callable[[], float] = time.monotonic
) -> Realtime:
    db = Database(
        settings.database_url,
        pool_size=_POOL,
        statement_timeout_ms=settings.request_timeout_s * 1000,
        call_limit_s=settings.request_timeout_s,
        application_name="yaninda-events",
    )
    rules = RealtimeRules(settings.events_days, settings.event_streams, settings.event_streams_per_person)
    announcer = Announcer(settings.database_url, CHANNEL)
    heads = EventHeads(settings.redis_url)
    return Realtime(db, announcer, heads, check_tokens_in(db, identify), rules, metrics, monotonic)
