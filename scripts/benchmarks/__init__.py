"""The measurements behind `scripts/bench`. `stores.py` is standard library only; the rest runs in the environment."""

DELIVERY = ("delivery-drain", "delivery-latency", "delivery-failures", "delivery-api", "delivery-batches")
MEASUREMENTS = ("candidates", "deadlines", "recovery", "http", "overload", "memory", "flat", *DELIVERY)
GROUPS = {"delivery": DELIVERY}
"""Names for several measurements."""
