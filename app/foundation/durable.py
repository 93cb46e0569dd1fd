"""Makes changes on disk survive a power cut."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """After a file was moved into it: the name of a file is on disk only when its folder is."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
