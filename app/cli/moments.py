"""Times as people type them in commands."""

import argparse
import re
from collections.abc import Callable
from datetime import datetime, timedelta

_AGO = re.compile(r"([0-9]{1,6}) ?([mhd])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
FORMS = "2026-03-12, 2026-03-12T20:55+03:00, today, yesterday, now, or 90m, 24h or 7d ago"


def _local_now() -> datetime:
    return datetime.now().astimezone()


def moment(text: str, now: Callable[[], datetime] = _local_now) -> datetime:
    """A time without a zone is in this machine's time zone, and a day means its beginning."""
    word = text.strip().lower()
    try:
        if word == "now":
            return now()
        if word in ("today", "yesterday"):
            day = now().replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
            return (day - timedelta(days=word == "yesterday")).astimezone()
        if ago := _AGO.fullmatch(word):
            return now() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(f"is not a time; write {FORMS}") from None
