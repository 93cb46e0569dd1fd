"""The figures of one month, and how they are read."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from app.jobs.reports.evenness import Evenness, Loads, evenness
from app.jobs.reports.neighbourhoods import Neighbourhood, neighbourhoods
from app.jobs.reports.report_month import Month
from app.jobs.reports.student_figures import Answers, StudentFigures, StudentLoad
from app.jobs.reports.task_figures import TaskFigures
from app.jobs.reports.waiting import Seconds, Waiting, waiting
from app.matching.contract import OfferState, TaskStatus

BUSIEST = 20
MEASURES = ("asked", "accepted", "completed")

Step = Callable[[str], None]
"""Called before each part; may raise to stop."""


@dataclass(frozen=True)
class Scope:
    month: Month
    institution: int | None
    least: int
    """A neighbourhood of fewer elders is not shown."""
    precision: int


@dataclass(frozen=True)
class Fairness:
    scope: Scope
    outcomes: Mapping[TaskStatus, int]
    offers: Mapping[OfferState, int]
    skipped: Mapping[str, int]
    loads: Mapping[str, Loads]
    """Of the available students, by measure."""
    loads_of_asked: Mapping[str, Loads]
    """Of those who were asked at least once."""
    silence: Mapping[int, int]
    seconds: Mapping[str, Seconds]
    neighbourhoods: Sequence[Neighbourhood]
    busiest: Sequence[StudentLoad]

    @property
    def tasks(self) -> int:
        return sum(self.outcomes.values())

    @property
    def unmet(self) -> int:
        return self.outcomes[TaskStatus.TIMED_OUT]

    @property
    def answers(self) -> dict[str, int]:
        """Offers by answer. One that was accepted and released later was accepted."""
        states = self.offers
        return {
            "accepted": states[OfferState.ACCEPTED] + states[OfferState.RELEASED],
            "rejected": states[OfferState.REJECTED],
            "silent": states[OfferState.EXPIRED],
            "withdrawn": states[OfferState.WITHDRAWN],
            "live": states[OfferState.PENDING],
            "skipped": states[OfferState.SKIPPED],
        }

    @property
    def asked(self) -> int:
        return sum(self.offers.values()) - self.offers[OfferState.SKIPPED]

    @property
    def silence_share(self) -> float | None:
        """Of the offers that ran to an end: accepted, rejected or silent."""
        answers = self.answers
        ended = answers["accepted"] + answers["rejected"] + answers["silent"]
        return answers["silent"] / ended if ended else None

    @property
    def available(self) -> int:
        return sum(self.loads["asked"].values())

    @property
    def never_asked(self) -> int:
        return self.loads["asked"].get(0, 0)

    def evenness(self, measure: str) -> dict[str, Evenness]:
        """Over the available students, and over those who were asked at least once."""
        return {"available": evenness(self.loads[measure]), "asked": evenness(self.loads_of_asked[measure])}

    @property
    def waiting(self) -> dict[str, Waiting]:
        return {kind: waiting(seconds) for kind, seconds in self.seconds.items()}

    def to_dict(self) -> dict[str, Any]:
        """All figures but those of single students."""
        scope = self.scope
        return {
            "month": str(scope.month),
            "time_zone": scope.month.time_zone,
            "from": scope.month.begins.isoformat(),
            "before": scope.month.ends.isoformat(),
            "institution": scope.institution,
            "tasks": {"total": self.tasks, "by_outcome": dict(self.outcomes)},
            "offers": {
                "asked": self.asked,
                "by_answer": self.answers,
                "skipped_by_reason": dict(self.skipped),
                "silence_share": self.silence_share,
            },
            "students": {
                "available": self.available,
                "never_asked": self.never_asked,
                "by_load": {measure: _by_load(self.loads[measure]) for measure in MEASURES},
                "evenness": {
                    measure: {who: asdict(found) for who, found in self.evenness(measure).items()}
                    for measure in MEASURES
                },
                "by_tenth_of_silence": {str(tenth): self.silence.get(tenth, 0) for tenth in range(10)},
            },
            "waiting": {kind: asdict(found) for kind, found in self.waiting.items()},
            "unmet_need": {
                "tasks": self.unmet,
                "least_people": scope.least,
                "precision": scope.precision,
                "neighbourhoods": [_neighbourhood(one) for one in self.neighbourhoods],
            },
        }


def _by_load(loads: Loads) -> dict[str, int]:
    return {str(load): loads[load] for load in sorted(loads)}


def _neighbourhood(one: Neighbourhood) -> dict[str, Any]:
    return {"cell": one.name, "rest": one.rest, **asdict(one.need), "unmet_share": one.need.unmet_share}


def read_fairness(tasks: TaskFigures, students: StudentFigures, scope: Scope, step: Step) -> Fairness:
    """Reads offers and tasks at the same time, because each keeps one processor of the database busy for seconds."""
    with ThreadPoolExecutor(1) as beside:
        offers = beside.submit(_read_offers, students)
        try:
            step("neighbourhoods")
            tasks.read_elders()
            outcomes = tasks.outcomes()
            groups = neighbourhoods(tasks.cells(scope.precision), scope.least)
            step("waiting")
            seconds = tasks.waiting()
            step("students")
        except BaseException:
            students.cancel()
            raise
        answers = offers.result()
    return Fairness(
        scope=scope,
        outcomes=outcomes,
        offers=answers.offers,
        skipped=answers.skipped,
        loads={measure: students.loads(measure) for measure in MEASURES},
        loads_of_asked={measure: students.loads(measure, asked=True) for measure in MEASURES},
        silence=students.silence(),
        seconds=seconds,
        neighbourhoods=groups,
        busiest=students.busiest(BUSIEST),
    )


def _read_offers(students: StudentFigures) -> Answers:
    students.read_answers()
    students.read_not_completed()
    students.read_students()
    return students.answers()
