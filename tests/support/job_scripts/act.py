"""Does what a test asks for."""

import os
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.jobs.engine.execution_context import ExecutionContext


class ActParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    diary: str | None = Field(None, description="A file that gets a line when a run begins, and one when it ends.")
    until: str | None = Field(None, description="Runs until this file exists, or the job is cancelled.")
    fail: bool = False


MAX_RETRIES = 0


def run(params: ActParams, context: ExecutionContext) -> dict[str, Any]:
    _note(params, "begins")
    while params.until is not None and not Path(params.until).exists() and not context.cancelled:
        context.progress(1, 2, "waiting")
        time.sleep(0.02)
    if params.fail:
        raise RuntimeError("as it was told")
    _note(params, "ends")
    return {"task": context.task_id}


def _note(params: ActParams, what: str) -> None:
    if params.diary is not None:
        with Path(params.diary).open("a") as diary:
            diary.write(f"{what} {os.getpid()} {time.monotonic()}\n")
