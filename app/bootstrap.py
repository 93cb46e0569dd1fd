"""The composition root: every process starts here, and nothing is opened anywhere else."""

from dataclasses import dataclass

from app.clock import Clock, DatabaseClock
from app.db import Database
from app.logs import configure_logs
from app.matching.commands import Matching
from app.matching.rules import MatchingRules
from app.matching.store.postgres.stores import PostgresStores
from app.redis_store.breakers import Breakers, RedisBreakers
from app.redis_store.client import open_client
from app.redis_store.contract import Clockwork
from app.redis_store.store import connect
from app.settings import Settings


@dataclass(frozen=True)
class Services:
    settings: Settings
    db: Database
    clock: Clock
    clockwork: Clockwork
    matching: Matching
    breakers: Breakers

    def close(self) -> None:
        self.breakers.close()
        self.clockwork.close()
        self.db.close()


def build_services(
    settings: Settings, *, role: str = "app", pool_size: int | None = None, plan_once: bool = False
) -> Services:
    configure_logs(settings.log_level, settings.log_json)
    pool_size = pool_size or settings.api_threads
    db = Database(
        settings.database_url,
        pool_size=pool_size,
        statement_timeout_ms=settings.request_timeout_s * 1000,
        call_limit_s=settings.request_timeout_s,
        application_name=f"yaninda-{role}",
        plan_once=plan_once,
    )
    clock = DatabaseClock(db.now)
    clockwork = connect(settings.redis_url, pool_size=pool_size)
    matching = Matching(PostgresStores(db), clockwork, clock, MatchingRules.from_settings(settings))
    # Asked only where figures are shown.
    breakers = RedisBreakers(open_client(settings.redis_url, pool_size=1))
    return Services(settings, db, clock, clockwork, matching, breakers)
