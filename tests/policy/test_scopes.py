"""No list and no call by id forgets the scope of a coordinator. `tests/abuse/test_other_institutions.py` calls them."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from app.api.access import KindConsumers, Open
from app.api.routing import Route
from app.api.views.catalogue import ROUTES
from app.delivery import service as delivery
from app.users.models import Role
from tests.policy.modules import MODULES

# Plans, routes and templates are the same for all institutions.
FOR_ALL = {"list_steps", "get_step", "preview_template"}
# The caller's own messages and pushes; the trail is for administrators.
OF_ANOTHER_KIND = {"list_messages", "list_recorded_pushes", "list_audit_entries", "list_steps"}
USES_SCOPE = re.compile(r"call\.scope|resource\.(seen|open)\(|(matching\.\w+|realtime\.open_stream)\(call\.caller\b")


def is_for_staff(route: Route) -> bool:
    """Below /me everybody sees what is their own."""
    who = route.who
    return not isinstance(who, Open | KindConsumers) and Role.COORDINATOR in who and not route.path.startswith("/me")


def test_every_view_for_coordinators_uses_their_scope() -> None:
    views: dict[str, Callable[..., Any]] = {route.view.__name__: route.view for route in ROUTES if is_for_staff(route)}
    assert len(views) > 30
    forgotten = {name for name, view in views.items() if not USES_SCOPE.search(inspect.getsource(view))}
    assert forgotten == FOR_ALL


def test_every_list_and_every_row_of_delivery_asks_for_a_scope() -> None:
    reads = [name for name in delivery.__all__ if name.startswith(("list_", "get_"))]
    without = {name for name in reads if "scope" not in inspect.signature(getattr(delivery, name)).parameters}
    assert without == OF_ANOTHER_KIND


def test_only_commands_of_the_operator_see_everything_by_themselves() -> None:
    """Elsewhere EVERYTHING is a default for what the service itself requests, and never given to a read."""
    users = {module.name for module in MODULES if "app.users.contract.EVERYTHING" in module.imported_names}
    assert users == {
        "app.cli.manage_dead_letters",
        "app.delivery.actions.requests",
        "app.delivery.messages.submit",
        "app.matching.deeds",
    }
