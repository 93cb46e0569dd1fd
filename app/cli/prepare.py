"""What `serve` does for `scripts/run` before the first role starts: it migrates the database, and loads the demo. All
modules are loaded while the stores start, and only once."""

import contextlib
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

from app.cli import demo, migrate
from app.foundation.parent import end_with_parent
from app.settings.settings import Settings


def prepare(settings: Settings, *, with_demo: bool) -> int:
    """Waits until stdin says that the stores run, by the URL of the owner of the tables. A process of its own reads it,
    so that no role ever holds that password. Returns its exit code. Nobody reads stdin any more afterwards."""
    pid = os.fork()
    if pid == 0:
        end_with_parent(signal.SIGTERM)
        os._exit(_exit_code(settings, with_demo))
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    before = signal.signal(signal.SIGTERM, _end)
    _, status = os.waitpid(pid, 0)
    signal.signal(signal.SIGTERM, before)
    return 0 if status == 0 else 1


def _end(_number: int, _frame: FrameType | None) -> None:
    """As an exception, so that `serve` cleans up. The process that prepares ends with this one."""
    raise SystemExit(1)


def _exit_code(settings: Settings, with_demo: bool) -> int:
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            return _migrate_and_load(settings, with_demo)
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.stderr.flush()


def _migrate_and_load(settings: Settings, with_demo: bool) -> int:
    owner_url = sys.stdin.readline().strip()
    if not owner_url:
        # The script has ended.
        return 1
    code = migrate.main(settings.model_copy(update={"migration_database_url": owner_url}), [])
    return code or (demo.main(settings, []) if with_demo else 0)
