"""The parts of the command that takes lists."""

from app.bootstrap.open_database import open_long_database
from app.db.database import Database
from app.matching.service import Matching, matching_on
from app.redis_store.store import connect
from app.settings.settings import Settings


def open_roster(settings: Settings) -> tuple[Database, Matching]:
    """People who leave the service may have tasks, which matching ends."""
    db = open_long_database(settings, "roster")
    return db, matching_on(db, connect(settings.redis_url, pool_size=1), settings)
