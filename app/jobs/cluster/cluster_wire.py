"""What crosses the network between the engine and the workers: strings, numbers, lists and bytes, no classes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.jobs.engine.engine import Artifact, Finished
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task

PROGRESS = "job-progress"
"""The topic of the cluster's events that has the progress of all tasks."""
_SHIPPED = "shipped:"
_SCRIPTS = Path(__file__).parents[1] / "scripts"


def pack_task(key: str, task: Task) -> dict[str, Any]:
    """A script that is part of the program is named, because a worker may have the program in another folder."""
    path = Path(task.script_path)
    if path.is_relative_to(_SCRIPTS):
        task = replace(task, script_path=f"{_SHIPPED}{path.relative_to(_SCRIPTS)}")
    return {"key": key, "task": task.to_dict()}


def unpack_task(values: Mapping[str, Any]) -> Task:
    task = Task.from_dict(values["task"])
    if task.script_path.startswith(_SHIPPED):
        return replace(task, script_path=str(_SCRIPTS / task.script_path.removeprefix(_SHIPPED)))
    return task


def pack_finished(finished: Finished) -> dict[str, Any]:
    return {
        "result": finished.result.to_dict(),
        "tries": finished.tries,
        "output": finished.output,
        "artifacts": [(artifact.name, artifact.content) for artifact in finished.artifacts],
    }


def unpack_finished(values: Mapping[str, Any], task_id: str) -> Finished:
    """`task_id` is the id that the task has here; two engines that share one run may each have their own."""
    result = replace(Result.from_dict(values["result"]), task_id=task_id)
    artifacts = tuple(Artifact(name, content) for name, content in values["artifacts"])
    return Finished(result, values["tries"], values["output"], artifacts)
