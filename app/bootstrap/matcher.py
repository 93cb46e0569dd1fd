"""The parts of the role `matcher`."""

from app.api.services import Services
from app.matching.role import Matcher
from app.ops.overdue_gauges import OverdueGauges
from app.ops.submission_counter import SubmissionCounter
from app.redis_store.events import ExpiryEvents


def build_matcher(services: Services) -> Matcher:
    events = ExpiryEvents(services.settings.redis_url)
    matcher = Matcher(services.settings, services.matching, events)
    matcher.metrics.registry.register(OverdueGauges(services.matching))
    SubmissionCounter(matcher.metrics.registry).watch(services.db)
    return matcher
