"""How the parts of the service are doing, for people. Load balancers ask `/readyz`, and Prometheus `/metrics`."""

from app.api.access import COORDINATORS
from app.api.routing import Call, Routes
from app.api.schemas_console import HealthOfPartsJson

routes = Routes("Health")


@routes.add("GET", "/api/v1/health", who=COORDINATORS, answers={200: HealthOfPartsJson})
def show_health(call: Call) -> HealthOfPartsJson:
    """Show how the parts of the service are doing.

    `late`: the part works, and more slowly than promised.
    """
    report = call.site.parts.look(call.scope)
    return HealthOfPartsJson.of(
        report.readiness,
        parts=report.parts,
        breakers=[{"name": name, "state": state} for name, state in report.breakers.items()],
        backlog=report.backlog,
        open_dead_letters=report.open_dead_letters,
    )
