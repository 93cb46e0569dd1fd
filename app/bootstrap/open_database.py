"""The databases of roles and commands."""

from app.db.database import Database
from app.settings.settings import Settings

# Connections of the delivery role for claims, the recorder, the clock and the threads beside the dispatcher.
_DELIVERY_POOL = 12
_LONGEST_CALL_S = 86_400.0


def open_database(settings: Settings, command: str) -> Database:
    """One connection is enough, because a command runs one transaction at a time."""
    return Database(settings.database_url, pool_size=1, application_name=f"yaninda-{command}")


def open_long_database(settings: Settings, command: str) -> Database:
    """For statements of minutes. They set their own limits."""
    return Database(
        settings.database_url,
        pool_size=2,
        statement_timeout_ms=0,
        lock_timeout_ms=0,
        call_limit_s=_LONGEST_CALL_S,
        application_name=f"yaninda-{command}",
    )


def open_request_database(settings: Settings, role: str, pool_size: int, *, plan_once: bool = False) -> Database:
    """For those who wait for an answer. `plan_once` is for a process that repeats few statements."""
    return Database(
        settings.database_url,
        pool_size=pool_size,
        statement_timeout_ms=settings.request_timeout_s * 1000,
        call_limit_s=settings.request_timeout_s,
        application_name=f"yaninda-{role}",
        plan_once=plan_once,
    )


def open_delivery_database(settings: Settings) -> Database:
    # Claims and records are short. A channel that writes to the database does so on its own threads.
    pool_size = _DELIVERY_POOL + 3 * settings.notification_queue_consumer_threads
    return Database(settings.database_url, pool_size=pool_size, application_name="yaninda-delivery")
