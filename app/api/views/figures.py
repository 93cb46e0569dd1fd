"""The figures of a month."""

from app.api.access import COORDINATORS
from app.api.routing import Call, Routes
from app.api.schemas_console import FiguresJson, FiguresQuery
from app.jobs.contract import FiguresTooSlow, Month, MonthFigures
from app.matching.contract import TaskStatus

routes = Routes("Figures")


@routes.add("GET", "/api/v1/figures", who=COORDINATORS, answers={200: FiguresJson}, errors=(FiguresTooSlow,))
def show_figures(call: Call, query: FiguresQuery) -> FiguresJson:
    """Show how a month went: tasks, waiting, unmet need, load and silence.

    At most a minute old. Of a month with too many tasks the answer is 503; the job `fairness_report` counts it.
    """
    zone = call.services.settings.time_zone
    month = Month.parse(query.month, zone) if query.month else Month.of(call.services.db.now(), zone)
    return _figures(call.site.figures.of(month, call.scope.institution_id))


def _figures(found: MonthFigures) -> FiguresJson:
    tasks = found.tasks
    return FiguresJson.model_validate(
        {
            "month": str(found.month),
            "computed_at": found.computed_at,
            "tasks": {
                "created": sum(tasks.values()),
                "completed": tasks.get(TaskStatus.COMPLETED, 0),
                "timed_out": tasks.get(TaskStatus.TIMED_OUT, 0),
                "cancelled": tasks.get(TaskStatus.CANCELLED, 0),
            },
            "to_accept": [
                {"day": day, "count": one.tasks, "p50_s": one.p50_s, "p90_s": one.p90_s}
                for day, one in found.to_accept.items()
            ],
            "waiting": found.waiting,
            "unmet": [
                {"lat": cell.middle[0], "lon": cell.middle[1], "count": count} for cell, count in found.unmet.items()
            ],
            "load": [{"completed": completed, "students": found.load[completed]} for completed in sorted(found.load)],
            "silence": found.silence,
        }
    )
