"""How often Python looks for garbage in cycles. All other garbage is freed when nothing refers to it any more."""

import gc

GARBAGE_AFTER = 20_000
"""Objects that are made and not freed before Python looks for cycles."""


def look_for_garbage_seldom() -> None:
    """For a role, once it is built. A batch or a request makes thousands of objects, and by default Python looks at
    them several times meanwhile."""
    # The objects that exist now live as long as the process. Scanning all of them would take as long as ten batches.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER)
