"""The services that the API uses. Nothing is connected until it is used."""

from app.api.services import Services
from app.bootstrap.open_database import open_request_database
from app.db.database import Database
from app.foundation.clock import DatabaseClock
from app.foundation.logs import configure_logs
from app.matching.service import matching_on
from app.redis_store.breakers import RedisBreakers
from app.redis_store.client import open_client
from app.redis_store.limits import PerUserLimit
from app.redis_store.store import connect
from app.settings.settings import Settings


def build_services(settings: Settings, *, role: str = "app", pool_size: int | None = None) -> Services:
    """Deeds repeat few statements, so they have connections with plans that are made once. Lists and searches need
    others: how PostgreSQL reads them best depends on what is asked for."""
    configure_logs(settings.log_level, settings.log_json)
    pool_size = pool_size or settings.api_threads
    deeds_db = open_request_database(settings, role, pool_size, plan_once=True)
    db = open_request_database(settings, role, pool_size)
    return services_on(db, deeds_db, settings, pool_size)


def services_on(db: Database, deeds_db: Database, settings: Settings, pool_size: int) -> Services:
    """Tests pass a database whose connections they keep."""
    clock = DatabaseClock(db.now)
    clockwork = connect(settings.redis_url, pool_size=pool_size)
    matching = matching_on(db, clockwork, settings, deeds_db)
    # The API only reads the state of the breakers, for its metrics.
    breakers = RedisBreakers(open_client(settings.redis_url, pool_size=1))
    location_limit = PerUserLimit("location", settings.locations_per_minute, settings.redis_url)
    return Services(settings, db, deeds_db, clock, clockwork, matching, breakers, location_limit)
