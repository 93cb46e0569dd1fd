"""A database whose connections survive the test."""

from app.db.database import Database
from app.settings.settings import Settings

LIMIT_S = Settings.model_fields["request_timeout_s"].default
KEPT_CONNECTIONS = 4
POOL_SIZE = 60


class KeptDatabase(Database):
    """Each test would otherwise pay for a new server process, which reads the catalog and plans every statement for
    itself, and for SQLAlchemy, which compiles every statement once for each engine: together more than most tests."""

    def __init__(self, database_url: str, *, pool_size: int) -> None:
        super().__init__(
            database_url,
            pool_size=pool_size,
            statement_timeout_ms=LIMIT_S * 1000,
            call_limit_s=LIMIT_S,
            application_name="yaninda-test",
        )

    def suits(self, settings: Settings) -> bool:
        """True if the test changes nothing that a connection depends on."""
        return settings.request_timeout_s == LIMIT_S

    def close(self) -> None:
        """Ends the connections of a test that opened many, because a server has a limit for all tests together."""
        if self.engine.pool.checkedin() > KEPT_CONNECTIONS:
            self.engine.dispose()

    def end(self) -> None:
        super().close()
