"""The measurements of `scripts/bench`. `stores.py` uses the standard library only; the rest needs the environment."""

DELIVERY = ("delivery-drain", "delivery-latency", "delivery-failures", "delivery-api", "delivery-batches")
JOBS = ("job-engine", "job-cluster", "job-rows", "report", "retention")
MEASUREMENTS = ("candidates", "deadlines", "recovery", "http", "overload", "memory", "flat", "roster", *DELIVERY, *JOBS)
GROUPS = {"delivery": DELIVERY, "jobs": JOBS}
"""Names that stand for several measurements."""
