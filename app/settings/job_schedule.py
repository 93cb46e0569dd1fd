"""The setting `JOBS_SCHEDULE`: jobs that run by themselves, at the times of a cron expression."""

from collections import Counter
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

SHIPPED_SCHEDULE = (
    '[{"job": "privacy_retention", "cron": "30 3 * * *"}, {"job": "fairness_report", "cron": "0 6 1 * *"}]'
)


class Missed(StrEnum):
    ONCE = "once"
    """However many runs were missed while no scheduler ran, the last of them is caught up."""
    SKIP = "skip"


class Overlap(StrEnum):
    WAIT = "wait"
    """A run waits until the run before it has ended."""
    SKIP = "skip"


def _readable_cron(value: str) -> str:
    if len(value.split()) != 5:
        raise ValueError("must have five fields: minute, hour, day of the month, month, day of the week")
    try:
        next(CronSim(value, datetime(2026, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise ValueError(f"is not a cron expression: {error}") from None
    except StopIteration:
        raise ValueError("never comes due") from None
    return value


class ScheduleEntry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    job: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    cron: Annotated[str, AfterValidator(_readable_cron)]
    params: dict[str, Any] = Field(default_factory=dict[str, Any])
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")] | None = None
    """Of the entry, if one job has several."""
    missed: Missed = Missed.ONCE
    overlap: Overlap = Overlap.WAIT

    @property
    def key(self) -> str:
        return self.name or self.job


_ENTRIES = TypeAdapter(tuple[ScheduleEntry, ...])


def parse_schedule(text: str) -> tuple[ScheduleEntry, ...]:
    """Raises `ValueError` with what is wrong and where."""
    try:
        entries = _ENTRIES.validate_json(text)
    except ValidationError as error:
        item = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in item["loc"])
        message = str(item["msg"]).removeprefix("Value error, ")
        raise ValueError(f"{place}: {message}" if place else message) from None
    twice = [key for key, number in Counter(entry.key for entry in entries).items() if number > 1]
    if twice:
        raise ValueError(f"has several entries with the name {twice[0]}; give them a name each")
    return entries
