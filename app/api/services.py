"""The services that the HTTP layer uses."""

from dataclasses import dataclass

from app.db.database import Database
from app.foundation.clock import Clock
from app.matching.service import Matching
from app.redis_store.breakers import Breakers
from app.redis_store.contract import Clockwork
from app.redis_store.limits import PerUserLimit
from app.settings.settings import Settings


@dataclass(frozen=True)
class Services:
    settings: Settings
    db: Database
    deeds_db: Database
    """For statements that every deed repeats: its connections make their plans once."""
    clock: Clock
    clockwork: Clockwork
    matching: Matching
    breakers: Breakers
    location_limit: PerUserLimit

    def close(self) -> None:
        self.location_limit.close()
        self.breakers.close()
        self.clockwork.close()
        self.db.close()
        self.deeds_db.close()
