"""The measurements behind `scripts/bench`. `stores.py` is standard library only; the rest runs in the environment."""

MEASUREMENTS = ("candidates", "deadlines", "recovery", "http", "overload", "memory", "flat")
