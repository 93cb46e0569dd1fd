"""Every table of the application, gathered so that migrations and tests see the whole `metadata`."""

from app.delivery import models as delivery
from app.matching import models as matching
from app.users import models as users

__all__ = ["delivery", "matching", "users"]
