"""When an entry of the schedule is due, and what the setting refuses."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from app.jobs.due_times import last_due
from app.settings.job_schedule import Missed, Overlap, parse_schedule
from app.settings.settings import SettingsError, load_settings

BERLIN, ISTANBUL = ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/Istanbul")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def due(cron: str, zone: ZoneInfo, after: str, until: str) -> str | None:
    found = last_due(cron, zone, utc(after), utc(until))
    return found.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if found else None


def runs(cron: str, zone: ZoneInfo, after: str, until: str) -> list[str]:
    """All times, as a scheduler finds them that looks every ten minutes."""
    found: list[str] = []
    moment, end = utc(after).timestamp(), utc(until).timestamp()
    last = utc(after)
    while moment <= end:
        at = last_due(cron, zone, last, datetime.fromtimestamp(moment, UTC))
        if at is not None:
            last = at
            found.append(at.astimezone(UTC).strftime("%m-%d %H:%M"))
        moment += 600
    return found


def test_times_are_in_the_zone_of_the_service() -> None:
    assert due("30 3 * * *", ISTANBUL, "2026-03-12 00:00", "2026-03-12 00:29") is None
    assert due("30 3 * * *", ISTANBUL, "2026-03-12 00:00", "2026-03-12 00:30") == "2026-03-12 00:30"
    assert due("30 3 * * *", ISTANBUL, "2026-03-12 00:30", "2026-03-13 00:29") is None


def test_of_many_missed_times_the_last_is_due() -> None:
    assert due("*/5 * * * *", ISTANBUL, "2026-01-01 00:00", "2026-03-12 09:07") == "2026-03-12 09:05"
    assert due("0 6 1 * *", ISTANBUL, "2026-01-15 00:00", "2026-03-12 09:07") == "2026-03-01 03:00"


# On 2026-03-29 clocks in Berlin go from 02:00 to 03:00, on 2026-10-25 from 03:00 back to 02:00. In Turkey they went
# from 03:00 to 04:00 on 2015-03-29, and from 04:00 back to 03:00 on 2015-11-08.
@pytest.mark.parametrize(
    ("zone", "cron", "after", "until", "found"),
    [
        (BERLIN, "30 2 * * *", "2026-03-28 12:00", "2026-03-30 12:00", ["03-29 01:00", "03-30 00:30"]),
        (BERLIN, "30 2 * * *", "2026-10-24 12:00", "2026-10-26 12:00", ["10-25 00:30", "10-26 01:30"]),
        (ISTANBUL, "30 3 * * *", "2015-03-28 12:00", "2015-03-30 12:00", ["03-29 01:00", "03-30 00:30"]),
        (ISTANBUL, "30 3 * * *", "2015-11-07 12:00", "2015-11-09 12:00", ["11-08 00:30", "11-09 01:30"]),
    ],
)
def test_time_in_a_gap_or_a_repeat_is_due_once(
    zone: ZoneInfo, cron: str, after: str, until: str, found: list[str]
) -> None:
    assert runs(cron, zone, after, until) == found


def test_hourly_job_runs_every_real_hour_through_a_change_of_the_clock() -> None:
    assert len(runs("0 * * * *", BERLIN, "2026-10-24 21:30", "2026-10-25 04:30")) == 7
    assert len(runs("0 * * * *", BERLIN, "2026-03-28 21:30", "2026-03-29 04:30")) == 7


def test_new_entry_in_a_repeated_hour_does_not_run_for_the_first_time_of_it() -> None:
    assert due("30 2 * * *", BERLIN, "2026-10-25 01:10", "2026-10-25 12:00") is None


def test_schedule_is_read() -> None:
    (entry,) = parse_schedule('[{"job": "fairness_report", "cron": "0 6 1 * *"}]')
    assert (entry.key, entry.params, entry.missed, entry.overlap) == (
        "fairness_report",
        {},
        Missed.ONCE,
        Overlap.WAIT,
    )
    text = '[{"job": "a", "cron": "* * * * *"}, {"job": "a", "name": "b", "cron": "0 0 * * *", "missed": "skip"}]'
    assert [entry.key for entry in parse_schedule(text)] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "JOBS_SCHEDULE: Invalid JSON"),
        ("{}", "JOBS_SCHEDULE: Input should be a valid array"),
        ('[{"job": "a"}]', "JOBS_SCHEDULE: 0.cron: Field required"),
        ('[{"job": "../a", "cron": "* * * * *"}]', "JOBS_SCHEDULE: 0.job: "),
        ('[{"job": "a", "cron": "61 * * * *"}]', "JOBS_SCHEDULE: 0.cron: is not a cron expression: Bad minute"),
        ('[{"job": "a", "cron": "* * * * * *"}]', "JOBS_SCHEDULE: 0.cron: must have five fields"),
        ('[{"job": "a", "cron": "0 0 30 2 *"}]', "JOBS_SCHEDULE: 0.cron: "),
        ('[{"job": "a", "cron": "0 0 * * *", "missed": "no"}]', "JOBS_SCHEDULE: 0.missed: "),
        ('[{"job": "a", "cron": "0 0 * * *", "color": 1}]', "JOBS_SCHEDULE: 0.color: "),
        ('[{"job": "a", "cron": "0 0 * * *"}, {"job": "a", "cron": "5 0 * * *"}]', "several entries with the name a"),
    ],
)
def test_refusal_of_a_schedule_names_the_variable_and_the_place(text: str, problem: str) -> None:
    given = {"DATABASE_URL": "d", "REDIS_URL": "r", "AUTH_SECRET": "x" * 40, "JOBS_SCHEDULE": text}
    with pytest.raises(SettingsError) as refused:
        load_settings(given)
    assert problem in str(refused.value)
    assert str(refused.value).startswith("JOBS_SCHEDULE: ")
