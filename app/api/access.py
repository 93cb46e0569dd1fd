"""The groups of callers. Every route names the group that may call it."""

from enum import Enum
from typing import Final

from app.users.models import Role


class Open(Enum):
    """For routes that need no token."""

    ANYONE = "anyone"


Who = frozenset[Role] | Open

ANYONE: Final = Open.ANYONE
SIGNED_IN: Final = frozenset(Role)
STUDENT: Final = frozenset({Role.STUDENT})
COORDINATORS: Final = frozenset({Role.COORDINATOR, Role.ADMIN})
"""An admin may do what a coordinator may."""
ELDER_AND_COORDINATORS: Final = COORDINATORS | {Role.ELDER}
ADMIN: Final = frozenset({Role.ADMIN})
