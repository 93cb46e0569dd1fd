"""Processes that a test did not start itself."""

from pathlib import Path


def is_alive(pid: int) -> bool:
    """False also for one that has ended and whose parent has not asked about it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
