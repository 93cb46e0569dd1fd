"""Metrics of the matcher."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from app.matching.follow_up import Figures


class MatcherMetrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self.registry = registry
        self.lateness = Histogram(
            "yaninda_offer_lateness_seconds",
            "From an offer's deadline to its expiry.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600),
            registry=registry,
        )
        self.offers = Counter("yaninda_offers", "Offers made by this matcher.", registry=registry)
        self.searches_ended = Counter("yaninda_searches_ended", "Searches that found nobody.", registry=registry)
        self.found_by_sweep = Counter(
            "yaninda_due_found_by_sweep",
            "Due tasks that only the sweep found: neither an event nor the ticker would have found them.",
            registry=registry,
        )

    def count(self, figures: Figures) -> None:
        for seconds in figures.late_s:
            self.lateness.observe(seconds)
        self.offers.inc(figures.offered)
        self.searches_ended.inc(figures.ended)
