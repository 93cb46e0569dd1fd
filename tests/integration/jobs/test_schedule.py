"""Jobs of the schedule are asked for once, however many schedulers run and however late they are."""

import json
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.jobs.scheduler import Scheduler, problems_with_schedule
from app.settings.job_schedule import ScheduleEntry
from app.users import service as users
from app.users.models import Role
from tests.support.jobs import SHIPPED, at_once, runner_on

ZONE = ZoneInfo("Europe/Istanbul")


@pytest.fixture
def just_past(db: Database) -> str:
    """A daily time that was some minutes ago, so that no other run comes due during a test."""
    return daily(db, minutes=5)


def daily(db: Database, **ago: float) -> str:
    moment = (db.now() - timedelta(**ago)).astimezone(ZONE)
    return f"{moment.minute} {moment.hour} * * *"


def entry(cron: str, **values: Any) -> ScheduleEntry:
    return ScheduleEntry.model_validate_json(json.dumps({"job": "greet", "cron": cron} | values))


def scheduler(db: Database, *entries: ScheduleEntry) -> Scheduler:
    made = Scheduler(db, SHIPPED, entries, ZONE, 60.0)
    assert made.run_once() == 0, "a new entry begins now"
    return made


def pass_time(db: Database, **time: float) -> None:
    """As if the schedulers had looked for the last time so long ago."""
    with db.transaction() as conn:
        conn.execute(text("UPDATE job_schedules SET last_due_at = last_due_at - :by"), {"by": timedelta(**time)})


def jobs_of(db: Database) -> list[Any]:
    with db.reading() as conn:
        return list(conn.execute(text("SELECT *, clock_timestamp() AS now FROM jobs ORDER BY id")))


def as_if_another_day(db: Database, *, ended: bool) -> None:
    end = ", status = 'CANCELLED', finished_at = clock_timestamp()" if ended else ""
    # The newest only: rows that move together meet for a moment, if the table gives the newer of them first.
    moved = "scheduled_for = scheduled_for - (SELECT count(*) FROM jobs) * interval '1 day'"
    newest = "scheduled_for = (SELECT max(scheduled_for) FROM jobs)"
    with db.transaction() as conn:
        conn.execute(text(f"UPDATE jobs SET {moved}{end} WHERE {newest}"))


def test_run_is_asked_for_once_by_many_schedulers(db: Database, just_past: str) -> None:
    schedulers = [scheduler(db, entry(just_past, params={"name": "Ayşe"})) for _ in range(5)]
    for turn in range(1, 4):
        pass_time(db, hours=1)
        assert sum(at_once(*(one.run_once for one in schedulers))) == 1
        assert sum(one.run_once() for one in schedulers) == 0
        as_if_another_day(db, ended=True)
        assert len(jobs_of(db)) == turn
    assert {(row.origin, row.schedule_name, row.params["name"]) for row in jobs_of(db)} == {
        ("SCHEDULE", "greet", "Ayşe")
    }


def test_index_stops_a_second_job_of_one_due_time(db: Database, just_past: str) -> None:
    """Should a scheduler ask again although it did already, as after a restore of one table."""
    one = scheduler(db, entry(just_past))
    for expected in (1, 0):
        pass_time(db, hours=1)
        assert one.run_once() == expected
        with db.transaction() as conn:
            conn.execute(text("UPDATE jobs SET status = 'CANCELLED', finished_at = clock_timestamp()"))
    assert len(jobs_of(db)) == 1


def test_missed_runs_are_caught_up_once(db: Database, just_past: str) -> None:
    one = scheduler(db, entry(just_past))
    pass_time(db, days=5)
    assert (one.run_once(), one.run_once()) == (1, 0)
    (row,) = jobs_of(db)
    assert timedelta(minutes=4) < row.now - row.scheduled_for < timedelta(minutes=10)


def test_missed_run_is_skipped_if_the_entry_says_so(db: Database) -> None:
    late = daily(db, minutes=5)
    one = scheduler(db, entry(late, missed="skip"), entry(late, name="caught_up"))
    pass_time(db, hours=1)
    assert one.run_once() == 1
    assert [row.schedule_name for row in jobs_of(db)] == ["caught_up"]
    assert one.run_once() == 0


def test_run_that_is_a_minute_late_is_not_missed(db: Database) -> None:
    one = scheduler(db, entry(daily(db, minutes=0), missed="skip"))
    pass_time(db, hours=1)
    assert one.run_once() == 1


def test_clock_that_was_ahead_and_is_put_right_does_not_silence_the_schedule(db: Database, just_past: str) -> None:
    one = scheduler(db, entry(just_past))
    pass_time(db, days=-365)
    assert one.run_once() == 0
    pass_time(db, hours=1)
    assert one.run_once() == 1


@pytest.mark.parametrize(("overlap", "number"), [("skip", 0), ("wait", 1)])
def test_run_that_overlaps_waits_or_is_skipped(db: Database, just_past: str, overlap: str, number: int) -> None:
    one = scheduler(db, entry(just_past, overlap=overlap))
    pass_time(db, hours=1)
    assert one.run_once() == 1
    as_if_another_day(db, ended=False)
    runner = runner_on(db)
    assert runner.runner.claim_once() == 1
    pass_time(db, hours=1)
    assert one.run_once() == number
    assert runner.runner.claim_once() == 0
    runner.engine.end(runner.task_id, "done")
    runner.wait_until_recorded()
    assert one.run_once() == 0, "what was skipped does not come later"
    assert runner.runner.claim_once() == number
    runner.runner.drain(0)


def test_one_run_waits_at_most(db: Database, just_past: str) -> None:
    """A job that takes longer than the time between two runs must not leave ever more of them behind."""
    one = scheduler(db, entry(just_past, overlap="wait"))
    for expected in (1, 0, 0):
        pass_time(db, hours=1)
        assert one.run_once() == expected
        as_if_another_day(db, ended=False)
    assert len(jobs_of(db)) == 1


def test_script_that_broke_since_the_start_alarms(db: Database, just_past: str) -> None:
    with db.transaction() as conn:
        users.create_user(conn, users.NewUser(Role.ADMIN, "Yönetici"))
    one = scheduler(db, entry(just_past, job="removed"))
    pass_time(db, hours=1)
    assert (one.run_once(), one.run_once()) == (0, 0)
    with db.reading() as conn:
        assert conn.execute(text("SELECT count(*) FROM notifications")).scalar_one() == 1


def test_unknown_scripts_and_wrong_parameters_are_found_at_the_start() -> None:
    cron = "0 6 1 * *"
    entries = [entry(cron, job="removed"), entry(cron, params={"times": 9, "color": "red"}), entry(cron, name="right")]
    problems = problems_with_schedule(SHIPPED, entries)
    assert [problem.partition(": ")[0] for problem in problems] == ["removed", "greet", "greet"]
    assert {problem.split(": ")[1] for problem in problems[1:]} == {"params.times", "params.color"}
