"""Reports how fairly a month's requests were shared among students, and where nobody was found.

Leaves an HTML page for people, CSV files for spreadsheets and a JSON file for programs. They name no person: students
have ids, and neighbourhoods of fewer than `least_people` elders are not shown.
"""

import time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.jobs.engine.execution_context import ExecutionContext
from app.jobs.engine.task import TaskType
from app.jobs.reports.fairness import Fairness, Scope, read_fairness
from app.jobs.reports.files import write_figures, write_neighbourhoods, write_students
from app.jobs.reports.report_month import MONTH, Month
from app.jobs.reports.report_page import ReportPage
from app.jobs.reports.student_figures import StudentFigures
from app.jobs.reports.task_figures import TaskFigures

# PostgreSQL does the work; the worker waits for it.
TASK_TYPE = TaskType.IO_BOUND
TIMEOUT_S = 900
MAX_RETRIES = 1

STEPS = ("neighbourhoods", "waiting", "students", "files")


class FairnessReportParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    month: Annotated[str, Field(pattern=f"^{MONTH.pattern}$")] | None = Field(
        None, description="A month such as 2026-09, in the service's time zone; the last one if not given."
    )
    institution: int | None = Field(None, description="Only tasks of elders of this institution.")
    least_people: int = Field(5, ge=2, le=1000, description="A neighbourhood of fewer elders is not shown.")
    precision: int = Field(6, ge=3, le=7, description="Letters of a neighbourhood's geohash; 6 is about 0.9 by 0.6 km.")
    language: Literal["tr", "en"] = Field("tr", description="Language of the page.")
    heading: str | None = Field(None, max_length=100, description="Name at the top, such as the institution's.")


class Cancelled(Exception):
    """Ends the report between two steps."""


def run(params: FairnessReportParams, context: ExecutionContext) -> dict[str, Any]:
    began = time.monotonic()
    month = _month(params, context)
    scope = Scope(month, params.institution, params.least_people, params.precision)

    def step(name: str) -> None:
        if context.cancelled:
            raise Cancelled
        context.progress(STEPS.index(name), len(STEPS), name)

    try:
        with context.db.transaction() as conn, context.db.transaction() as beside:
            tasks = TaskFigures(conn, month, params.institution)
            students = StudentFigures(beside, month, params.institution, tasks.snapshot())
            report = read_fairness(tasks, students, scope, step)
            step("files")
            written = _write(report, students, params, context)
    except Cancelled:
        return {"month": str(month), "cancelled": True}
    context.progress(len(STEPS), len(STEPS), "")
    return _summary(report, written) | {"took_s": round(time.monotonic() - began, 2)}


def _month(params: FairnessReportParams, context: ExecutionContext) -> Month:
    zone = context.settings.time_zone
    return Month.parse(params.month, zone) if params.month else Month.before(context.db.now(), zone)


def _write(report: Fairness, students: StudentFigures, params: FairnessReportParams, context: ExecutionContext) -> int:
    name = f"fairness-{report.scope.month}"
    page = ReportPage(report, params.language, params.heading)
    context.artifact(f"{name}.html").write_text(page.html(), encoding="utf-8")
    write_figures(context.artifact(f"{name}.csv"), report)
    write_neighbourhoods(context.artifact(f"{name}-neighbourhoods.csv"), report)
    by_student = context.artifact(f"{name}-students.csv"), context.artifact(f"{name}.json")
    return write_students(*by_student, report, students.students())


def _summary(report: Fairness, students: int) -> dict[str, Any]:
    completed, waiting = report.evenness("completed")["available"], report.waiting
    return {
        "month": str(report.scope.month),
        "institution": report.scope.institution,
        "tasks": report.tasks,
        "unmet": report.unmet,
        "offers": sum(report.offers.values()),
        "silence_share": report.silence_share,
        "students": students,
        "available": report.available,
        "gini": completed.gini,
        "jain": completed.jain,
        "accept_p50_s": waiting["accept"].p50_s,
        "arrive_p50_s": waiting["arrive"].p50_s,
        "neighbourhoods": len(report.neighbourhoods),
    }
