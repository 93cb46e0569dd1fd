"""Imports the tables of every package, so that `metadata` is complete for migrations and tests."""

from app.db import bites
from app.delivery import models as delivery
from app.jobs import models as jobs
from app.matching import models as matching
from app.realtime import models as realtime
from app.roster import models as roster
from app.users import models as users

__all__ = ["bites", "delivery", "jobs", "matching", "realtime", "roster", "users"]
