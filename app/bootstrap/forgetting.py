"""What forgetting a person needs. Reading every message takes longer than a request may."""

from collections.abc import Generator
from contextlib import contextmanager

from app.bootstrap.build_services import build_services
from app.delivery.actions.result_format import PUBLISHED, Topic
from app.jobs.service import forget_jobs
from app.privacy.service import Forgetting
from app.redis_store.traces import Traces
from app.settings.settings import Settings

LIMIT_S = 3600
"""For each statement, and for each transaction."""


@contextmanager
def open_forgetting(settings: Settings) -> Generator[Forgetting]:
    services = build_services(settings.model_copy(update={"request_timeout_s": LIMIT_S}), role="users", pool_size=2)
    traces = open_traces(settings)
    try:
        yield Forgetting(services.db, services.matching, traces, settings.country_code, forget_jobs)
    finally:
        traces.close()
        services.close()


def open_traces(settings: Settings) -> Traces:
    topics = [*PUBLISHED, Topic.REQUESTED]
    return Traces(settings.redis_url, [f"{settings.action_topic_prefix}.{topic}" for topic in topics])
