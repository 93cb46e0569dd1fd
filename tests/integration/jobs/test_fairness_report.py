"""The report on real PostGIS, compared with a plain computation over random small worlds."""

import csv
import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError
from sqlalchemy import text

from app.db.database import Database
from app.foundation.ids import earliest_id
from app.jobs.engine.execution_context import ExecutionContext, JobResources
from app.jobs.reports.geohash import Cell, column_sql, row_sql
from app.jobs.reports.month_figures import FiguresTooSlow, MonthAtAGlance
from app.jobs.reports.report_month import Month
from app.jobs.reports.student_figures import StudentFigures
from app.jobs.reports.task_figures import TaskFigures
from app.jobs.scripts import fairness_report
from app.jobs.scripts.fairness_report import FairnessReportParams
from app.settings.settings import Settings

BEGINS, ENDS = datetime(2026, 8, 31, 21, tzinfo=UTC), datetime(2026, 9, 30, 21, tzinfo=UTC)
"""September 2026 in Istanbul."""
ENDED = ("COMPLETED", "TIMED_OUT", "CANCELLED")


@dataclass
class Asked:
    student: int
    state: str
    reason: str | None


@dataclass
class Told:
    """A task of the test's world."""

    at: datetime
    elder: int
    status: str
    student: int | None
    accept_s: int | None
    arrive_s: int | None
    offers: list[Asked]


class World:
    def __init__(self, db: Database, seed: int, elders: int = 12, students: int = 6) -> None:
        self.db, self.draws = db, Random(seed)
        self.elders = range(1, elders + 1)
        self.students = range(elders + 1, elders + students + 1)
        self.institution = {elder: self.draws.choice([1, 2]) for elder in self.elders}
        self.homes = {e: (self.draws.uniform(40.9, 41.0), self.draws.uniform(29.0, 29.1)) for e in self.elders}
        """Where they press. Every fourth has no home on record."""
        self.tasks: list[Told] = []
        with db.transaction() as conn:
            for elder, (lat, lon) in self.homes.items():
                conn.execute(
                    text(
                        "INSERT INTO users (id, role, name, institution_id, home) VALUES (:id, 'ELDER', 'Ayşe', :of,"
                        " CASE WHEN :id % 4 > 0 THEN ST_MakePoint(:lon, :lat)::geography END)"
                    ),
                    {"id": elder, "of": self.institution[elder], "lat": lat, "lon": lon},
                )
            for student in self.students:
                values = {"id": student, "on": student % 3 > 0, "at": BEGINS}
                conn.execute(
                    text("INSERT INTO users (id, role, name, created_at) VALUES (:id, 'STUDENT', 'Ali', :at)"), values
                )
                conn.execute(text("INSERT INTO students (id, on_duty) VALUES (:id, :on)"), values)

    def told(self, at: datetime, elder: int | None = None) -> Told:
        draws = self.draws
        status = draws.choice(ENDED)
        asked = draws.sample(self.students, draws.randint(0, len(self.students)))
        offers = [
            Asked(one, state, draws.choice(["OFF_DUTY", "TOO_FAR"]) if state == "SKIPPED" else None)
            for one in asked
            for state in [draws.choice(["REJECTED", "EXPIRED", "WITHDRAWN", "SKIPPED", "RELEASED"])]
        ]
        student = None
        if status == "COMPLETED" or (status == "CANCELLED" and offers and draws.random() < 0.5):
            if not offers:
                offers.append(Asked(draws.choice(self.students), "", None))
            offers[-1].state, offers[-1].reason, student = "ACCEPTED", None, offers[-1].student
        accept = draws.randint(1, 4_000) if student else None
        arrive = accept + draws.randint(1, 4_000) if accept and status == "COMPLETED" else None
        found = Told(at, elder or draws.choice(self.elders), status, student, accept, arrive, offers)
        self.tasks.append(found)
        return found

    def write(self) -> None:
        with self.db.transaction() as conn:
            for number, task in enumerate(self.tasks):
                id_ = UUID(int=earliest_id(task.at).int | 7 << 76 | number)
                lat, lon = self.homes[task.elder]
                values = {"id": id_, "lat": lat, "lon": lon, **task.__dict__}
                for name in ("accept", "arrive"):
                    seconds = values[f"{name}_s"]
                    values[name] = None if seconds is None else task.at + timedelta(seconds=seconds + 0.4)
                conn.execute(
                    text(
                        "INSERT INTO tasks (id, status, elder_id, student_id, location, created_at, updated_at,"
                        " search_until, assigned_at, started_at) VALUES (:id, :status, :elder, :student,"
                        " ST_MakePoint(:lon, :lat)::geography, :at, :at, :at, :accept, :arrive)"
                    ),
                    values,
                )
                for one in task.offers:
                    conn.execute(
                        text(
                            "INSERT INTO offers (task_id, student_id, state, reason, offered_at) VALUES"
                            " (:task, :student, :state, :reason, :at)"
                        ),
                        {"task": id_, "at": None if one.state == "SKIPPED" else task.at, **one.__dict__},
                    )


@dataclass
class Report:
    summary: Any
    folder: Path

    @property
    def json(self) -> Any:
        return json.loads((self.folder / f"fairness-{self.summary['month']}.json").read_text())

    def rows(self, part: str = "") -> list[dict[str, str]]:
        path = self.folder / f"fairness-{self.summary['month']}{part}.csv"
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))


@pytest.fixture
def context(db: Database, settings: Settings, tmp_path: Path) -> ExecutionContext:
    return ExecutionContext("t", "io-0", resources=lambda: JobResources(settings, db), folder=tmp_path)


def made(context: ExecutionContext, **params: Any) -> Report:
    summary = fairness_report.run(FairnessReportParams(**{"month": "2026-09"} | params), context)
    assert context.folder is not None
    return Report(summary, context.folder)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("institution", [None, 2])
def test_the_figures_are_those_of_a_plain_computation(
    db: Database, context: ExecutionContext, seed: int, institution: int | None
) -> None:
    world = World(db, seed)
    for _ in range(40):
        world.told(BEGINS + timedelta(days=world.draws.uniform(-10, 40)))
    world.write()
    tasks = [
        task
        for task in world.tasks
        if BEGINS <= task.at < ENDS and institution in (None, world.institution[task.elder])
    ]
    offers = [offer for task in tasks for offer in task.offers]
    report = made(context, institution=institution, least_people=2)
    found = report.json
    outcomes = Counter(task.status for task in tasks)
    assert found["tasks"]["by_outcome"] == {
        status: outcomes[status] for status in ("PENDING", "ASSIGNED", "STARTED", "COMPLETED", "TIMED_OUT", "CANCELLED")
    }
    states = Counter(offer.state for offer in offers)
    ended = states["ACCEPTED"] + states["RELEASED"] + states["REJECTED"] + states["EXPIRED"]
    assert found["offers"]["by_answer"] == {
        "accepted": states["ACCEPTED"] + states["RELEASED"],
        "rejected": states["REJECTED"],
        "silent": states["EXPIRED"],
        "withdrawn": states["WITHDRAWN"],
        "live": 0,
        "skipped": states["SKIPPED"],
    }
    assert found["offers"]["silence_share"] == pytest.approx(states["EXPIRED"] / ended)
    assert found["offers"]["skipped_by_reason"] == Counter(o.reason for o in offers if o.state == "SKIPPED")
    for kind, waits in (
        ("accept", sorted(task.accept_s for task in tasks if task.accept_s)),
        ("arrive", sorted(task.arrive_s for task in tasks if task.arrive_s)),
    ):
        assert found["waiting"][kind]["tasks"] == len(waits)
        assert found["waiting"][kind]["mean_s"] == pytest.approx(sum(waits) / len(waits))
        assert found["waiting"][kind]["p90_s"] == waits[-(-len(waits) * 9 // 10) - 1]
    check_students(world, tasks, found, institution)
    groups = found["unmet_need"]["neighbourhoods"]
    assert sum(one["elders"] for one in groups) == len({task.elder for task in tasks})
    assert sum(one["tasks"] for one in groups) == len(tasks)
    assert sum(one["unmet"] for one in groups) == outcomes["TIMED_OUT"]
    assert sum(one["cancelled"] for one in groups) == outcomes["CANCELLED"]
    assert all(one["elders"] >= 2 for one in groups)
    assert [int(row["tasks"]) for row in report.rows("-neighbourhoods")] == [one["tasks"] for one in groups]


@pytest.mark.parametrize("institution", [None, 2])
def test_the_figures_at_a_glance_are_those_of_a_plain_computation(db: Database, institution: int | None) -> None:
    world = World(db, 5)
    for _ in range(40):
        world.told(BEGINS + timedelta(days=world.draws.uniform(-3, 33)))
    world.write()
    tasks = [
        task
        for task in world.tasks
        if BEGINS <= task.at < ENDS and institution in (None, world.institution[task.elder])
    ]
    with db.transaction() as conn:
        found = MonthAtAGlance(conn, Month(2026, 9, "Europe/Istanbul"), institution).read()
    assert found.tasks == Counter(task.status for task in tasks)
    waits: dict[date, list[int]] = {}
    for task in sorted(tasks, key=lambda task: task.accept_s or 0):
        if task.accept_s:
            waits.setdefault(_day(task.at), []).append(task.accept_s)
    assert {day: (one.tasks, one.p90_s) for day, one in found.to_accept.items()} == {
        day: (len(seconds), seconds[-(-len(seconds) * 9 // 10) - 1]) for day, seconds in waits.items()
    }
    assert found.waiting["accept"].tasks == sum(len(seconds) for seconds in waits.values())
    arrived = [task.arrive_s for task in tasks if task.arrive_s]
    assert found.waiting["arrive"].mean_s == pytest.approx(sum(arrived) / len(arrived))
    homes = [world.homes[task.elder] for task in tasks if task.status == "TIMED_OUT"]
    for cell, count in found.unmet.items():
        lat, lon = cell.middle
        inside = [one for one in homes if abs(one[0] - lat) < 0.00275 and abs(one[1] - lon) < 0.0055]
        assert len(inside) == count, "the cell is 0.0055 by 0.011 degrees"
    assert sum(found.unmet.values()) == len(homes)
    completed = Counter(task.student for task in tasks if task.status == "COMPLETED")
    on_duty = [s for s in world.students if s % 3 > 0 and institution is None]
    assert found.load == Counter(completed[student] for student in {*completed, *on_duty})
    states = Counter((_day(task.at), offer.state) for task in tasks for offer in task.offers)
    assert {(one.day, one.accepted, one.rejected, one.expired) for one in found.silence} == {
        (day, states[day, "ACCEPTED"] + states[day, "RELEASED"], states[day, "REJECTED"], states[day, "EXPIRED"])
        for day in {day for day, state in states if state != "SKIPPED"}
    }
    assert sum(one.asked for one in found.silence) == sum(n for (_, s), n in states.items() if s != "SKIPPED")


def _day(moment: datetime) -> date:
    return (moment + timedelta(hours=3)).date()


def test_figures_that_take_too_long_are_given_up(db: Database) -> None:
    with db.transaction() as other:
        other.execute(text("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(FiguresTooSlow), db.transaction() as conn:
            MonthAtAGlance(conn, Month(2026, 9, "Europe/Istanbul"), None, limit_s=0.05).read()


def check_students(world: World, tasks: list[Told], found: Any, institution: int | None) -> None:
    load: dict[int, Counter[str]] = {student: Counter() for student in world.students}
    for task in tasks:
        for offer in task.offers:
            load[offer.student][offer.state] += 1
        if task.status == "COMPLETED" and task.student:
            load[task.student]["completed"] += 1
    for one in found["by_student"]:
        counts = load[one["student_id"]]
        skipped = counts["SKIPPED"]
        assert one["asked"] == sum(counts.values()) - skipped - counts["completed"]
        assert one["accepted"] == counts["ACCEPTED"] + counts["RELEASED"]
        assert (one["silent"], one["skipped"], one["completed"]) == (counts["EXPIRED"], skipped, counts["completed"])
    asked = {s for s, counts in load.items() if sum(counts.values()) > counts["SKIPPED"]}
    on_duty = {s for s in world.students if s % 3 > 0 and institution is None}
    loads = [load[student]["completed"] for student in asked | on_duty]
    expected = sum(abs(a - b) for a in loads for b in loads) / (2 * len(loads) * sum(loads))
    assert found["students"]["available"] == len(loads)
    assert found["students"]["evenness"]["completed"]["available"]["gini"] == pytest.approx(expected)


def test_a_task_belongs_to_the_month_of_its_local_midnight(db: Database, context: ExecutionContext) -> None:
    world = World(db, 1)
    moment = timedelta(milliseconds=1)
    for at in (BEGINS - moment, BEGINS, ENDS - moment, ENDS):
        world.told(at)
    world.write()
    counted = {month: made(context, month=month).summary["tasks"] for month in ("2026-08", "2026-09", "2026-10")}
    assert counted == {"2026-08": 1, "2026-09": 2, "2026-10": 1}


def test_an_empty_month_gives_an_empty_report(db: Database, context: ExecutionContext) -> None:
    report = made(context, month="2001-02")
    assert (report.summary["tasks"], report.summary["gini"], report.summary["accept_p50_s"]) == (0, None, None)
    assert report.rows("-students") == []
    assert "Bu ay için kayıt yok." in (report.folder / "fairness-2001-02.html").read_text()


def test_the_last_month_is_reported_if_none_is_named(db: Database, context: ExecutionContext) -> None:
    report = fairness_report.run(FairnessReportParams(), context)
    now = db.now() + timedelta(hours=3)
    last = now.replace(day=1) - timedelta(days=1)
    assert report["month"] == f"{last:%Y-%m}"


def test_files_name_no_person_and_no_place(db: Database, context: ExecutionContext) -> None:
    world = World(db, 3)
    for elder in world.elders:
        world.told(BEGINS, elder)
    world.write()
    report = made(context, least_people=5)
    for path in report.folder.iterdir():
        content = path.read_text()
        assert "Ayşe" not in content
        assert "Ali" not in content
        assert not any(f"{lat:.3f}" in content or f"{lon:.3f}" in content for lat, lon in world.homes.values())
    assert all(one["elders"] >= 5 for one in report.json["unmet_need"]["neighbourhoods"])


def test_offers_are_read_at_the_same_moment_as_tasks(db: Database) -> None:
    world, month = World(db, 1), Month(2026, 9, "Europe/Istanbul")
    with db.transaction() as conn, db.transaction() as beside:
        snapshot = TaskFigures(conn, month, None).snapshot()
        for _ in range(5):
            world.told(BEGINS + timedelta(days=1))
        world.write()
        students = StudentFigures(beside, month, None, snapshot)
        students.read_answers()
        assert sum(students.answers().offers.values()) == 0


def test_a_cancelled_report_leaves_nothing(db: Database, settings: Settings) -> None:
    stopped = Event()
    stopped.set()
    context = ExecutionContext("t", "io-0", cancel=stopped, resources=lambda: JobResources(settings, db))
    assert fairness_report.run(FairnessReportParams(month="2026-09"), context) == {
        "month": "2026-09",
        "cancelled": True,
    }
    assert context.artifacts == {}


def test_wrong_parameters_are_refused() -> None:
    for wrong in ({"month": "2026-13"}, {"least_people": 1}, {"language": "de"}, {"k": 3}):
        with pytest.raises(ValidationError):
            FairnessReportParams(**wrong)


def test_cells_are_those_of_postgis(db: Database) -> None:
    statement = (
        "SELECT {column} AS cell_column, {row} AS cell_row, ST_GeoHash(place, {precision}) AS name FROM (SELECT"
        " ST_SetSRID(ST_MakePoint(-180 + n * 36.0007, -90 + n * 17.99), 4326) AS place FROM generate_series(0, 10) n"
        " UNION ALL SELECT ST_SetSRID(ST_MakePoint(28.9 + n * 0.0013, 40.9 + n * 0.0007), 4326)"
        " FROM generate_series(1, 200) n) spots WHERE ST_X(place) <= 180"
    )
    with db.reading() as conn:
        for precision in range(3, 8):
            columns = {"column": column_sql("place", precision), "row": row_sql("place", precision)}
            for found in conn.execute(text(statement.format(precision=precision, **columns))):
                cell = Cell(precision, found.cell_column, found.cell_row)
                assert cell.name == found.name
                assert cell.parent.name == found.name[:-1]
