"""The tables of the roster, gathered from its packages."""

from app.roster.sync.models import ChangeType, ConsumerScope, RunStatus

__all__ = ["ChangeType", "ConsumerScope", "RunStatus"]
