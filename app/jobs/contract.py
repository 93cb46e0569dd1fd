"""The values and errors of jobs that other packages use."""

from app.jobs.catalogue import Catalogue, CatalogueEntry
from app.jobs.engine.execution_context import ARTIFACT_NAME
from app.jobs.engine.task import TaskType
from app.jobs.errors import (
    ArtifactNotFound,
    CatalogueBusy,
    JobEnded,
    JobNotFound,
    ParamProblem,
    ScriptBroken,
    ScriptFolderGone,
    ScriptUnknown,
    WrongParams,
)
from app.jobs.job_store import JobKey, RequestedJob, digest_of
from app.jobs.models import JobOrigin
from app.jobs.reports.figures_at_hand import FiguresAtHand
from app.jobs.reports.month_figures import FiguresTooSlow, MonthFigures
from app.jobs.reports.report_month import Month
from app.jobs.script_declaration import MOST_RETRIES, Declaration
from app.jobs.service import JobRequest
from app.jobs.states import JobStatus
from app.jobs.views import ArtifactView, JobInFull, JobProgress, JobView, QueueLoad

__all__ = [
    "ARTIFACT_NAME",
    "MOST_RETRIES",
    "ArtifactNotFound",
    "ArtifactView",
    "Catalogue",
    "CatalogueBusy",
    "CatalogueEntry",
    "Declaration",
    "FiguresAtHand",
    "FiguresTooSlow",
    "JobEnded",
    "JobInFull",
    "JobKey",
    "JobNotFound",
    "JobOrigin",
    "JobProgress",
    "JobRequest",
    "JobStatus",
    "JobView",
    "Month",
    "MonthFigures",
    "ParamProblem",
    "QueueLoad",
    "RequestedJob",
    "ScriptBroken",
    "ScriptFolderGone",
    "ScriptUnknown",
    "TaskType",
    "WrongParams",
    "digest_of",
]
