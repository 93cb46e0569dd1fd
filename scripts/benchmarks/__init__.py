"""The measurements of `scripts/bench`. `stores.py` uses the standard library only; the rest needs the environment."""

DELIVERY = ("delivery-drain", "delivery-latency", "delivery-failures", "delivery-api", "delivery-batches")
MEASUREMENTS = ("candidates", "deadlines", "recovery", "http", "overload", "memory", "flat", *DELIVERY)
GROUPS = {"delivery": DELIVERY}
"""Names that stand for several measurements."""
