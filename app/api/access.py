"""The groups of callers. Every route names the group that may call it."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from app.roster.models import ConsumerScope
from app.users.models import Role


class Open(Enum):
    """For routes that need no token."""

    ANYONE = "anyone"


@dataclass(frozen=True)
class KindConsumers:
    """Consumers of the kind in the path, whose tokens have this scope, and admins."""

    scope: ConsumerScope


Who = frozenset[Role] | Open | KindConsumers

ANYONE: Final = Open.ANYONE
SIGNED_IN: Final = frozenset(Role)
STUDENT: Final = frozenset({Role.STUDENT})
COORDINATORS: Final = frozenset({Role.COORDINATOR, Role.ADMIN})
"""An admin may do what a coordinator may."""
ELDER_AND_COORDINATORS: Final = COORDINATORS | {Role.ELDER}
ADMIN: Final = frozenset({Role.ADMIN})
READERS: Final = KindConsumers(ConsumerScope.READ)
PUSHERS: Final = KindConsumers(ConsumerScope.PUSH)
