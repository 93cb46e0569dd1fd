"""The report of a run, as a table and as JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.torture.checker import Violation
from tests.torture.downtime import Downtime
from tests.torture.event_checks import EventFigures
from tests.torture.feed_poller import PollCounts
from tests.torture.nightly_lists import SyncCounts


@dataclass(frozen=True)
class Report:
    seed: int
    minutes: float
    copies: str
    faults: Mapping[str, int]
    deaths: int
    tasks: Mapping[str, int]
    offers: Mapping[str, int]
    answers: Mapping[str, int]
    pushes: int
    worst_lateness_s: float
    prompt: int
    """Offers that expired while only clocks were wrong."""
    compared: int
    """Live offers that were compared with Redis after it had lost data."""
    downtime: Downtime | None
    syncs: SyncCounts
    followed: Mapping[str, int]
    """What people did who follow the lists, as far as complete runs tell."""
    polls: PollCounts
    events: EventFigures
    violations: Sequence[Violation]
    notes: Sequence[str]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False, default=str) + "\n")

    def table(self) -> str:
        rows = [
            ("seed", str(self.seed)),
            ("minutes", f"{self.minutes:.1f}"),
            ("role processes", self.copies),
            ("faults injected", f"{sum(self.faults.values())}"),
            *((f"  {kind}", str(count)) for kind, count in sorted(self._faults_by_kind().items())),
            ("role processes restarted", str(self.deaths)),
            ("tasks ended", f"{sum(self.tasks.values())}: {_counts(self.tasks)}"),
            ("offers", f"{sum(self.offers.values())}: {_counts(self.offers)}"),
            ("answers to requests", _counts(self.answers)),
            ("pushes", str(self.pushes)),
            ("latest close of an offer outside fault windows", f"{self.worst_lateness_s:.3f} s"),
        ]
        rows += [
            ("offers expired while only clocks were wrong", str(self.prompt)),
            ("live offers compared with Redis", str(self.compared)),
            ("runs of roster sync", f"{self.syncs.syncs}: {self.syncs.taken} complete, {self.syncs.killed} killed"),
            ("people of the lists", _counts({name: count for name, count in self.followed.items() if count})),
            (
                "changes polled",
                f"{self.polls.changes} in {self.polls.polls} polls, {self.polls.bootstraps} beginnings with an archive",
            ),
            ("events", self.events.shown()),
        ]
        if self.downtime is not None:
            down = self.downtime
            rows.append(
                (
                    "after two hours down",
                    f"{down.overdue} overdue offers, all closed {down.caught_up_s:.1f} s after the start of the roles,"
                    f" {down.per_s:.0f}/s, at most {down.at_once} in one transaction, {down.ahead} before their turn,"
                    f" the rest at most {down.displaced} places after their turn",
                )
            )
        rows += [("note", note) for note in self.notes]
        rows.append(("violations", str(len(self.violations))))
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        return "\n".join([*lines, *(f"  {one.promise}: {one.detail}" for one in self.violations)])

    def _faults_by_kind(self) -> Counter[str]:
        """All failpoints as two kinds, kill and pause; the JSON counts each place."""
        places = {name: count for name, count in self.faults.items() if name.startswith("failpoint ")}
        found = Counter({name: count for name, count in self.faults.items() if name not in places})
        for act in ("kill", "pause"):
            hit = {name: count for name, count in places.items() if name.startswith(f"failpoint {act} ")}
            if hit:
                found[f"failpoint {act}, at {len(hit)} places"] = sum(hit.values())
        return found


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
