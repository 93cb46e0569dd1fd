from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.jobs.engine.execution_context import ExecutionContext, JobResources
from app.jobs.scripts import demo_city, fairness_report
from app.jobs.scripts.demo_city import DemoCityParams
from app.jobs.scripts.fairness_report import FairnessReportParams
from app.settings.settings import Environment, Settings
from tests.support.matching import broken_promises

SMALL = {"students": 60, "elders": 90, "tasks": 500, "days": 20}

UNTOLD = {
    "an elder without exactly one notice that nobody was found",
    "an offer of which its student was not told",
    "a search that timed out without exactly one notice to the elder",
    "an offer without a notification to its student",
}
"""Finished tasks of the demo city have no messages."""


@pytest.fixture
def context(db: Database, settings: Settings, tmp_path: Path) -> ExecutionContext:
    return ExecutionContext("t", "io-0", resources=lambda: JobResources(settings, db), folder=tmp_path)


def people(db: Database) -> list[Any]:
    statement = (
        "SELECT firebase_uid, name, phone, on_duty, ST_AsText(coalesce(location, home)) FROM users LEFT JOIN students"
        " USING (id) ORDER BY firebase_uid"
    )
    with db.reading() as conn:
        return [tuple(row) for row in conn.execute(text(statement))]


def count(db: Database, table: str) -> int:
    with db.reading() as conn:
        return conn.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()


def test_a_second_run_adds_nothing_and_says_so(db: Database, context: ExecutionContext) -> None:
    first = demo_city.run(DemoCityParams(**SMALL), context)
    assert first["added"] == {"students": 60, "elders": 90, "tasks": 500}
    before = people(db), count(db, "tasks"), count(db, "offers")
    second = demo_city.run(DemoCityParams(**SMALL), context)
    assert second["added"] == {"students": 0, "elders": 0, "tasks": 0}
    assert "already" in second["note"]
    assert (people(db), count(db, "tasks"), count(db, "offers")) == before
    more = demo_city.run(DemoCityParams(students=70, elders=90), context)
    assert more["added"] == {"students": 10, "elders": 0, "tasks": 0}


def test_another_seed_makes_other_people_beside_them(db: Database, context: ExecutionContext) -> None:
    demo_city.run(DemoCityParams(students=5, elders=5, seed=1), context)
    demo_city.run(DemoCityParams(students=5, elders=5, seed=2, on_duty=0, institutions=[4]), context)
    assert count(db, "users") == 20
    with db.reading() as conn:
        assert conn.execute(text("SELECT count(*) FROM users WHERE institution_id = 4")).scalar_one() == 10
        assert conn.execute(text("SELECT count(*) FROM students WHERE NOT on_duty")).scalar_one() >= 5


def test_its_finished_tasks_keep_the_promises_and_fill_a_report(db: Database, context: ExecutionContext) -> None:
    demo_city.run(DemoCityParams(**SMALL, until="2026-10-01"), context)
    with db.transaction() as conn:
        broken = {name for name, rows in broken_promises(conn).items() if rows}
        wrong_counts = conn.execute(
            text(
                "SELECT count(*) FROM tasks t WHERE (asked, skipped) <> (SELECT count(offered_at), count(*) -"
                " count(offered_at) FROM offers WHERE task_id = t.id)"
            )
        ).scalar_one()
    assert wrong_counts == 0
    assert (count(db, "new_events"), count(db, "events")) == (0, 0), "nobody is told of what is made up"
    assert broken == UNTOLD
    report = fairness_report.run(FairnessReportParams(month="2026-09"), context)
    assert report["tasks"] == 500
    assert report["offers"] == count(db, "offers")
    assert 0 < report["silence_share"] < 1
    assert 0 < report["gini"] < 1


def test_completed_tasks_of_this_month_count_for_the_students(db: Database, context: ExecutionContext) -> None:
    demo_city.run(DemoCityParams(**SMALL), context)
    with db.reading() as conn:
        wrong = conn.execute(
            text(
                "SELECT count(*) FROM students s, (SELECT date_trunc('month', now() AT TIME ZONE"
                " 'Europe/Istanbul')::date AS this) m WHERE (CASE WHEN month = this THEN completed ELSE 0 END) <>"
                " (SELECT count(*) FROM tasks t WHERE t.student_id = s.id AND t.status = 'COMPLETED' AND t.ended_at"
                " >= this::timestamp AT TIME ZONE 'Europe/Istanbul')"
            )
        ).scalar_one()
    assert wrong == 0


def test_a_cancelled_run_stops_between_two_steps(db: Database, settings: Settings) -> None:
    stopped = Event()

    def stop(_done: int, _total: int | None, _note: str) -> None:
        stopped.set()

    context = ExecutionContext("t", "io-0", stop, stopped, lambda: JobResources(settings, db))
    done = demo_city.run(DemoCityParams(**SMALL), context)
    assert (done["cancelled"], done["added"]) == (True, {"students": 60, "elders": 0, "tasks": 0})


def test_production_is_refused_unless_forced(db: Database, settings: Settings) -> None:
    production = settings.model_copy(update={"environment": Environment.PRODUCTION})
    context = ExecutionContext("t", "io-0", resources=lambda: JobResources(production, db))
    with pytest.raises(ValueError, match="force"):
        demo_city.run(DemoCityParams(students=1, elders=1), context)
    assert count(db, "users") == 0
    assert demo_city.run(DemoCityParams(students=1, elders=1, force=True), context)["added"]["students"] == 1
