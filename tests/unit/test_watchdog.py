"""The thread that ends silent database calls ends after the calls that it guards."""

import threading
import time
from typing import Any

from app.db.watchdog import LOOK_EVERY_S, Watchdog


def watching() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "database-watchdog"]


def test_closed_watchdog_leaves_no_thread() -> None:
    before = watching()
    watchdog, connection = Watchdog(30), object()
    with watchdog.guard(connection):
        (started,) = [thread for thread in watching() if thread not in before]
    watchdog.close()
    started.join(50 * LOOK_EVERY_S)
    assert not started.is_alive()


def test_running_call_stays_guarded_after_the_watchdog_is_closed() -> None:
    before = watching()
    watchdog, connection = Watchdog(30), object()
    with watchdog.guard(connection):
        (started,) = [thread for thread in watching() if thread not in before]
        watchdog.close()
        time.sleep(3 * LOOK_EVERY_S)
        assert started.is_alive()
    started.join(50 * LOOK_EVERY_S)
    assert not started.is_alive()


def test_call_after_closing_is_guarded_again() -> None:
    before = watching()
    watchdog: Any = Watchdog(30)
    with watchdog.guard(object()):
        pass
    watchdog.close()
    with watchdog.guard(object()):
        assert any(thread not in before and thread.is_alive() for thread in watching())
    watchdog.close()
