"""What a script gets besides its parameters."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from threading import Event
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A worker whose scripts need no database does not load SQLAlchemy.
    from app.db.database import Database
    from app.redis_store.contract import Clockwork
    from app.settings.settings import Settings

ARTIFACT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")

MOST_NOTE_CHARACTERS = 500
LARGEST_STEP = 2**63 - 1

ReportProgress = Callable[[int, int | None, str], None]


def _report_nowhere(_done: int, _total: int | None, _note: str) -> None:
    """For a script that runs without an engine."""


@dataclass(frozen=True)
class JobResources:
    settings: "Settings"
    db: "Database"
    clockwork: "Clockwork | None" = None


def _step(number: int) -> int:
    return min(max(int(number), 0), LARGEST_STEP)


def _no_resources() -> JobResources:
    raise RuntimeError("This engine was started without a database for its scripts.")


@dataclass
class ExecutionContext:
    task_id: str
    worker_id: str
    report_progress: ReportProgress = _report_nowhere
    cancel: Event = field(default_factory=Event)
    resources: Callable[[], JobResources] = _no_resources
    """Opened once in each worker process, when the first script asks."""
    artifacts: dict[str, Path] = field(default_factory=dict[str, Path])
    folder_prefix: str = "yaninda-job-"
    folder: Path | None = None
    """Where artifacts are written until they are kept; made for the first of them."""

    def progress(self, done: int, total: int | None = None, note: str = "") -> None:
        """Raises in the script if `done` or `total` is no number."""
        self.report_progress(_step(done), None if total is None else _step(total), str(note)[:MOST_NOTE_CHARACTERS])

    @property
    def cancelled(self) -> bool:
        """A script that works in steps asks between them, and returns early."""
        return self.cancel.is_set()

    def artifact(self, name: str) -> Path:
        """The path of a file that is kept with the job. The script writes it before it returns."""
        if not ARTIFACT_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for an artifact: letters, digits, '.', '_' and '-', at most 100")
        if self.folder is None:
            self.folder = Path(mkdtemp(prefix=self.folder_prefix))
        return self.artifacts.setdefault(name, self.folder / name)

    @property
    def db(self) -> "Database":
        return self.resources().db

    @property
    def settings(self) -> "Settings":
        return self.resources().settings

    @property
    def clockwork(self) -> "Clockwork | None":
        """None if the engine was started without Redis."""
        return self.resources().clockwork
