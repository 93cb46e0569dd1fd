"""The measurements of `scripts/bench`. `stores.py` uses the standard library only; the rest needs the environment."""

DELIVERY = ("delivery-drain", "delivery-latency", "delivery-failures", "delivery-api", "delivery-batches")
JOBS = ("job-engine", "job-cluster", "job-rows", "report", "retention")
ROSTER = ("roster-runs", "roster-nights", "roster-pages", "roster-parsing", "roster-presses")
MATCHING = (
    "candidates",
    "deadlines",
    "recovery",
    "http",
    "overload",
    "ceiling",
    "hostile",
    "events",
    "pages",
    "memory",
    "start",
    "flat",
)
MEASUREMENTS = (*MATCHING, *ROSTER, *DELIVERY, *JOBS)
GROUPS = {"roster": ROSTER, "delivery": DELIVERY, "jobs": JOBS}
"""Names that stand for several measurements."""
