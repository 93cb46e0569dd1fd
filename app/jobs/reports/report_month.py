"""A month of the service's time zone, and the ids that were made in it."""

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from app.foundation.ids import earliest_id

MONTH = re.compile(r"([1-9][0-9]{3})-(0[1-9]|1[0-2])")


@dataclass(frozen=True)
class Month:
    year: int
    number: int
    time_zone: str

    def __str__(self) -> str:
        return f"{self.year:04}-{self.number:02}"

    @classmethod
    def parse(cls, text: str, time_zone: str) -> "Month":
        found = MONTH.fullmatch(text)
        if found is None:
            raise ValueError("must be a month such as 2026-09")
        return cls(int(found[1]), int(found[2]), time_zone)

    @classmethod
    def of(cls, moment: datetime, time_zone: str) -> "Month":
        local = moment.astimezone(ZoneInfo(time_zone))
        return cls(local.year, local.month, time_zone)

    @classmethod
    def before(cls, moment: datetime, time_zone: str) -> "Month":
        """The last month that was over at this moment."""
        return cls.of(moment, time_zone)._shifted(-1)

    @property
    def begins(self) -> datetime:
        return datetime(self.year, self.number, 1, tzinfo=ZoneInfo(self.time_zone))

    @property
    def ends(self) -> datetime:
        return self._shifted(1).begins

    @property
    def ids(self) -> tuple[UUID, UUID]:
        """The smallest id of the month and the smallest of the next. A task's id holds the time at which it was
        created, so this is a range of the primary key, and of the offers' key as well."""
        return earliest_id(self.begins), earliest_id(self.ends)

    def _shifted(self, by: int) -> "Month":
        months = self.year * 12 + self.number - 1 + by
        return Month(months // 12, months % 12 + 1, self.time_zone)
