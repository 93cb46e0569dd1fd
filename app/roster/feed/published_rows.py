"""How a row of a list is shown, in the changes and in the archive alike."""

from datetime import datetime
from zoneinfo import ZoneInfo

from app.roster.kinds.kind import Kind


def members(kind: Kind) -> str:
    """The arguments of `json_build_object` for `fields` and `aliases`. All names are always there."""
    shown = [column.shown_as for column in kind.source.columns]
    return ", ".join([*(f"'{name}', fields -> '{name}'" for name in shown), "'aliases', aliases"])


def shown_time(kind: Kind, moment: datetime, zone: ZoneInfo) -> str:
    local = moment.astimezone(zone)
    return (local.replace(tzinfo=None) if kind.answers_in_service_time else local).isoformat(timespec="seconds")
