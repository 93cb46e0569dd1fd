"""The numbers in the rules of matching, read from the settings once."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from app.settings.settings import Settings


@dataclass(frozen=True)
class MatchingRules:
    offer_ttl: timedelta = timedelta(seconds=600)
    radius_m: float = 1000.0
    cap: int = 50
    search_limit: timedelta = timedelta(seconds=3600)
    start_limit: timedelta = timedelta(seconds=1800)
    complete_limit: timedelta = timedelta(seconds=14_400)
    time_zone: str = "Europe/Istanbul"
    tasks_per_minute: int = 6
    tasks_per_hour: int = 20
    cell_m: float = 130.0
    home_range_m: float = 25_000.0
    cancels_per_student: int = 2
    alarm_interval: timedelta = timedelta(seconds=600)
    withdrawals_per_day: int = 3
    shortest_visit: timedelta = timedelta(seconds=300)
    fastest_mps: float = 200 / 3.6
    jump_pause: timedelta = timedelta(seconds=600)

    @property
    def offer_reach_m(self) -> float:
        """The greatest distance from the task to a student who is being asked. It is more than the radius, because
        positions from phones jitter."""
        return 1.5 * self.radius_m

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The numbers that `eligibility.py` has as parameters. No other code reads the radius."""
        return {
            "radius_m": self.radius_m,
            "time_zone": self.time_zone,
            "cell_m": self.cell_m,
            "cancels": self.cancels_per_student,
        }

    @staticmethod
    def from_settings(settings: Settings) -> "MatchingRules":
        return MatchingRules(
            offer_ttl=timedelta(seconds=settings.offer_ttl_s),
            radius_m=settings.match_radius_m,
            cap=settings.candidate_cap,
            search_limit=timedelta(seconds=settings.search_limit_s),
            start_limit=timedelta(seconds=settings.start_limit_s),
            complete_limit=timedelta(seconds=settings.complete_limit_s),
            time_zone=settings.time_zone,
            tasks_per_minute=settings.tasks_per_minute,
            tasks_per_hour=settings.tasks_per_hour,
            cell_m=settings.place_cell_m,
            home_range_m=settings.home_range_km * 1000,
            cancels_per_student=settings.cancels_per_student,
            alarm_interval=timedelta(seconds=settings.alarm_interval_s),
            withdrawals_per_day=settings.withdrawals_per_day,
            shortest_visit=timedelta(seconds=settings.shortest_visit_s),
            fastest_mps=settings.fastest_kmh / 3.6,
            jump_pause=timedelta(seconds=settings.jump_pause_s),
        )
