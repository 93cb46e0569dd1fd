"""When an entry of the schedule is due. Pure.

As in Debian's cron, a run whose time does not exist because the clock was put forward is due right after the gap, and a
run whose time comes twice is due at the first.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim


def last_due(cron: str, zone: ZoneInfo, after: datetime, until: datetime) -> datetime | None:
    """The last time after `after` and not after `until`; None if there is none."""
    found: datetime | None = None
    for local in CronSim(cron, after.astimezone(zone)):
        # In UTC, because two times of one zone are compared by their clocks, which show some hours twice.
        moment = local.astimezone(UTC)
        if moment > until.astimezone(UTC):
            break
        if moment > after.astimezone(UTC):
            found = moment
    return found
