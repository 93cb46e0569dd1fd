"""What the settings say about lists that come in."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class ListLimits:
    bad_rows_share: float = 0.01
    """If more rows are bad, the list is refused. A single bad row never is the reason."""
    archive_bytes: int = 256 * MEGABYTE
    unpacked_bytes: int = 1024 * MEGABYTE
    unpacked_ratio: int = 200
    record_bytes: int = 256 * 1024
    time_s: float = 600.0
    redirects: int = 3


@dataclass(frozen=True)
class ReadingRules:
    zone: ZoneInfo
    """Service time: times with an offset are converted to it."""
    country_code: str = "90"
    limits: ListLimits = ListLimits()
    processes: int = 1
    """How many parse beside the one that reads. Below two, the reading process parses by itself."""
    piece_bytes: int = 256 * 1024
    """How much of the list is parsed at a time. Larger pieces are not faster."""
    small_bytes: int = 4 * MEGABYTE
    """Shorter lists are parsed before processes would have started."""
