"""Every table of the application, gathered so that migrations and tests see the whole `metadata`."""

from app.delivery import models as delivery
from app.delivery.actions import models as actions
from app.delivery.channels import models as channels
from app.delivery.directory import models as directory
from app.delivery.plans import models as plans
from app.matching import models as matching
from app.users import models as users

__all__ = ["actions", "channels", "delivery", "directory", "matching", "plans", "users"]
