"""The errors of jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.foundation.errors import AppError, Conflict, NotFound, Unavailable


class JobNotFound(NotFound):
    """There is no job with this id."""

    code = "job_not_found"


class ArtifactNotFound(NotFound):
    """The job has no artifact with this name."""

    code = "artifact_not_found"


class JobEnded(Conflict):
    """The job has ended and cannot be cancelled any more."""

    code = "job_ended"


class ScriptUnknown(AppError):
    """There is no script with this name."""

    code = "script_unknown"


class ScriptBroken(AppError):
    """The script cannot be used; the message says why."""

    code = "script_broken"


class CatalogueBusy(Unavailable):
    """Too many scripts of the operator's own folder are being read at this moment; try again."""

    code = "catalogue_busy"


class ScriptFolderGone(Unavailable):
    """The folder JOBS_DIR was removed, or cannot be read; the message says what to do."""

    code = "script_folder_gone"


@dataclass(frozen=True)
class ParamProblem:
    """One wrong parameter, in the words of pydantic."""

    field: str
    """Such as `month`, or `areas.0.name` inside a list; empty if the parameters as a whole are wrong."""
    message: str
    kind: str
    """The type of pydantic's error, such as `missing`."""

    def to_dict(self) -> dict[str, Any]:
        return {"field": self.field, "message": self.message, "kind": self.kind}


class WrongParams(AppError):
    """The script refuses the parameters."""

    code = "wrong_params"

    def __init__(self, problems: Sequence[ParamProblem]) -> None:
        super().__init__("The script refuses the parameters.")
        self.problems = problems
