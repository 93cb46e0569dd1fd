"""The objects of the HTTP layer. The processes of the role are forked from the one that builds them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.api.auth import Doorkeeper
from app.api.services import Services
from app.delivery.contract import Backlog
from app.jobs.contract import Catalogue, FiguresAtHand
from app.ops.health import Readiness
from app.ops.metrics import HttpMetrics
from app.ops.parts import Parts
from app.realtime.service import Realtime


@dataclass(frozen=True)
class Site:
    services: Services
    doorkeeper: Doorkeeper
    backlog: Backlog
    catalogue: Catalogue
    readiness: Readiness
    parts: Parts
    figures: FiguresAtHand
    metrics: HttpMetrics
    realtime: Realtime
    documents: Callable[[], Mapping[str, bytes]]
    """Constant responses by path: the OpenAPI document and its rendering. Made for the first reader, because they take
    a fifth of a second and most processes are never asked for them."""

    def start(self) -> None:
        """After the fork, because threads do not survive it, and processes must not share connections."""
        self.realtime.start()

    def close(self) -> None:
        self.realtime.close()
        self.services.close()
