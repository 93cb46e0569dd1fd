"""Forgets personal data after its time. Each kind of data has its own time, a setting.

Rows are forgotten in bites (see `app/db/bites.py`), and months are dropped whole (see `app/db/months.py`), so nobody
waits for a lock longer than a tenth of a second. A run that is interrupted has done what it has done; the next one goes
on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog

from app.db.bites import Eaten, Sweep, eat, read_mark
from app.db.database import Database, limit_statements
from app.db.months import TRIES, OldMonths, Part, SweepByMonth, TableBusy, add_months, drop_month, partitions
from app.delivery import service as delivery
from app.foundation.clock import rfc3339
from app.foundation.ids import earliest_id
from app.matching import service as matching
from app.roster import service as roster
from app.settings.settings import Settings
from app.users import service as users

log = structlog.get_logger(__name__)

COUNT_LIMIT_S = 600.0
Kinds = Mapping[str, tuple[Part, ...]]
"""In the order in which they are forgotten. The setting of a kind is `retain_<kind>_days`."""
KINDS: Kinds = {**matching.OLD_TASKS, **delivery.OLD_MESSAGES, **users.OLD_USERS, **roster.OLD_LISTED_PEOPLE}
"""Of the packages below; who knows more kinds adds them."""


@dataclass
class Forgotten:
    """What a run has done with one kind, or would do."""

    kind: str
    days: int
    rows: int = 0
    months: list[str] = field(default_factory=list[str])
    """The partitions that were dropped."""
    busy: list[str] = field(default_factory=list[str])
    """A partition that stays until the next run, with later ones, because others used the table all the time."""
    skipped: int = 0
    """Rows that others had locked, or that may still be sent. The next run finds them."""
    bites: int = 0
    longest_ms: float = 0.0
    """The longest time that a bite took, and so the longest that anybody waited for it."""
    progress: Callable[[str], None] = field(default=lambda _note: None, repr=False)
    oldest: datetime | None = None
    """The oldest row that would be forgotten; only in a dry run."""

    def add(self, eaten: Eaten) -> None:
        self.rows += eaten.rows
        self.skipped += eaten.skipped
        self.bites += eaten.bites
        self.longest_ms = max(self.longest_ms, eaten.longest_ms)

    def to_dict(self, dry_run: bool) -> dict[str, Any]:
        known: dict[str, Any] = {"days": self.days, "rows": self.rows, "months": self.months}
        if dry_run:
            return known | {"oldest": rfc3339(self.oldest) if self.oldest else None}
        return known | {
            "busy": self.busy,
            "skipped": self.skipped,
            "bites": self.bites,
            "longest_ms": round(self.longest_ms, 1),
        }


@dataclass(frozen=True)
class RetentionRun:
    db: Database
    settings: Settings
    now: datetime
    progress: Callable[[int, int | None, str], None]
    cancelled: Callable[[], bool]
    known: Kinds = field(default_factory=lambda: KINDS)
    drop_tries: int = TRIES

    def forget(self, kinds: Sequence[str]) -> list[Forgotten]:
        done: list[Forgotten] = []
        for place, kind in enumerate(kinds):
            if self.cancelled():
                break
            done.append(self._forget_kind(kind, partial(self.progress, place, len(kinds))))
        return done

    def count(self, kinds: Sequence[str]) -> list[Forgotten]:
        """What `forget` would do, without doing it."""
        return [self._count_kind(kind) for kind in kinds]

    def days(self, kind: str) -> int:
        return getattr(self.settings, f"retain_{kind}_days")

    def _forget_kind(self, kind: str, progress: Callable[[str], None]) -> Forgotten:
        done = Forgotten(kind, self.days(kind), progress=progress)
        progress(kind)
        for part in self.known[kind] if done.days else ():
            match part:
                case Sweep():
                    self._eat(part, done)
                case SweepByMonth():
                    self._eat_by_month(part, done)
                case OldMonths():
                    self._forget_months(part, done)
        return done

    def _eat(self, sweep: Sweep, done: Forgotten) -> Eaten:
        def note(rows: int) -> None:
            done.progress(f"{done.kind}: {done.rows + rows:,} rows")

        eaten = eat(self.db, sweep, self._values(done.days), cancelled=self.cancelled, note=note)
        done.add(eaten)
        return eaten

    def _eat_by_month(self, part: SweepByMonth, done: Forgotten) -> None:
        is_whole = True
        for sweep in self._by_month(part, done.days):
            # The mark stays before rows that were skipped, so the later months are swept without it.
            is_whole = not self._eat(sweep if is_whole else replace(sweep, mark=None), done).skipped and is_whole

    def _by_month(self, part: SweepByMonth, days: int) -> list[Sweep]:
        """The sweeps of the months that have rows to be forgotten and are not behind the mark."""
        before, mark = earliest_id(self._cutoff(days)), read_mark(self.db, part.sweep.mark)
        with self.db.reading() as conn:
            months = [(partition.name, *partition.borders) for partition in partitions(conn, part.table)]
        return [part.of(name) for name, first, last in months if first < before and (mark is None or str(last) > mark)]

    def _forget_months(self, old: OldMonths, done: Forgotten) -> None:
        cutoff = self._cutoff(done.days)
        with self.db.reading() as conn:
            months = partitions(conn, old.table)
        for partition in months:
            if partition.ends_at > cutoff or self.cancelled():
                break
            try:
                rows = drop_month(self.db, old, partition, self.drop_tries)
            except TableBusy:
                # A backup, for example, reads all months for hours. The next run drops them.
                done.busy.append(partition.name)
                break
            if rows is None:
                self._eat(replace(old.rows, table=partition.name), done)
            else:
                done.rows += rows
                done.months.append(partition.name)
        self._eat(replace(old.rows, table=old.table.default), done)

    # ---- what would be forgotten ----

    def _count_kind(self, kind: str) -> Forgotten:
        found = Forgotten(kind, self.days(kind))
        for part in self.known[kind] if found.days else ():
            match part:
                case Sweep():
                    self._count(part, found)
                case SweepByMonth():
                    for sweep in self._by_month(part, found.days):
                        self._count(sweep, found)
                case OldMonths():
                    self._count_months(part, found)
        return found

    def _count_months(self, old: OldMonths, found: Forgotten) -> None:
        cutoff = self._cutoff(found.days)
        with self.db.reading() as conn:
            months = [month for month in partitions(conn, old.table) if month.ends_at <= cutoff]
        for name in [*(month.name for month in months), old.table.default]:
            self._count(replace(old.rows, table=name), found)
        found.months = [month.name for month in months]

    def _count(self, sweep: Sweep, found: Forgotten) -> None:
        marks = {"after": read_mark(self.db, sweep.mark), "behind": read_mark(self.db, sweep.behind)}
        values = self._values(found.days) | marks
        with self.db.transaction() as conn:
            limit_statements(conn, COUNT_LIMIT_S)
            row = conn.execute(sweep.count, values).one()
        found.rows += row.rows
        if row.oldest is not None:
            found.oldest = min(found.oldest or row.oldest, row.oldest)

    def _values(self, days: int) -> dict[str, Any]:
        cutoff = self._cutoff(days)
        return {"cutoff": cutoff, "before": earliest_id(cutoff)}

    def _cutoff(self, days: int) -> datetime:
        return self.now - timedelta(days=days)


def run_retention(
    db: Database,
    settings: Settings,
    *,
    kinds: Sequence[str] = (),
    known: Kinds = KINDS,
    dry_run: bool = False,
    progress: Callable[[int, int | None, str], None] = lambda _done, _total, _note: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Forgets the given kinds, or all that are known. The result is JSON."""
    run = RetentionRun(db, settings, db.now(), progress, cancelled, known)
    chosen = list(kinds or known)
    months = [] if dry_run else _add_months(db)
    found = run.count(chosen) if dry_run else run.forget(chosen)
    return {
        "at": rfc3339(run.now),
        "dry_run": dry_run,
        "finished": not cancelled(),
        "months_added": months,
        "kinds": {one.kind: one.to_dict(dry_run) for one in found},
    }


def _add_months(db: Database) -> list[str]:
    try:
        return add_months(db, delivery.MONTHLY)
    except TableBusy:
        # The role `delivery` tries again until it succeeds.
        log.warning("months_not_added", code=TableBusy.code)
        return []
