"""Runs a script in this process and turns whatever happens into a result."""

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from pydantic import ValidationError

from app.jobs.engine.declaration import Run, params_model
from app.jobs.engine.execution_context import ExecutionContext
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task

LARGEST_RESULT_BYTES = 1024 * 1024
DEEPEST_RESULT = 100
"""Programs that read JSON have limits, such as 255 levels in the API's own."""


class ScriptRefused(Exception):
    """The task fails, and would fail in the same way at every other try."""


@dataclass(frozen=True)
class ScriptEnd:
    result: Result
    may_retry: bool = True


class PythonExecutor:
    def execute(self, task: Task, context: ExecutionContext) -> ScriptEnd:
        started_at = datetime.now(UTC)
        try:
            data = _run(task, context)
        except ScriptRefused as refused:
            return ScriptEnd(Result.failed(task.id, str(refused), started_at, datetime.now(UTC)), may_retry=False)
        except BaseException as error:
            # Also SystemExit and what a script invents: the thread and its neighbours go on.
            with contextlib.suppress(Exception):  # The script may have closed or replaced the stream.
                traceback.print_exc(file=sys.stderr)
            if context.cancelled:
                # Stopping by an error is a way to stop.
                return ScriptEnd(Result.cancelled(task.id, started_at, datetime.now(UTC)))
            return ScriptEnd(Result.failed(task.id, explain_error(error), started_at, datetime.now(UTC)))
        if context.cancelled:
            return ScriptEnd(Result.cancelled(task.id, started_at, datetime.now(UTC)))
        return ScriptEnd(Result.success(task.id, data, started_at, datetime.now(UTC)))


def explain_error(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    said = _words(error)
    return f"{type(error).__name__}: {said}{place}" if said else f"{type(error).__name__}{place}"


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        # An error of the script's own, which fails to describe itself.
        return "(it has no text)"


def _run(task: Task, context: ExecutionContext) -> Any:
    name = f"yaninda_script_{task.id}"
    module = _load(name, task.script_path)
    try:
        run = _entry(module)
        return _checked(run(_params(run, task.params), context))
    finally:
        sys.modules.pop(name, None)


def _load(name: str, path: str) -> ModuleType:
    """A new module each time, so that a script finds none of the state that its last run left in its globals."""
    try:
        state = os.stat(path)  # noqa: PTH116 - a Path costs more than the call
        code = _compiled(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise ScriptRefused(f"{Path(path).name} cannot be read ({type(error).__name__})") from None
    except (SyntaxError, ValueError) as error:
        raise ScriptRefused(f"{Path(path).name} is not Python: {error}") from None
    module = ModuleType(name)
    module.__file__ = path
    # Dataclasses and pydantic look up the module of a class by its name.
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


@lru_cache(maxsize=256)
def _compiled(path: str, _mtime_ns: int, _size: int) -> CodeType:
    return compile(Path(path).read_bytes(), path, "exec")


def _entry(module: ModuleType) -> Run:
    run = getattr(module, "run", None)
    if not callable(run):
        raise ScriptRefused("the script has no function run(params, context)")
    return run


def _params(run: Run, params: Mapping[str, Any]) -> Any:
    model = params_model(run)
    if model is None:
        return dict(params)
    try:
        return model.model_validate_json(json.dumps(dict(params)))
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors(include_input=False)]
        raise ScriptRefused(f"wrong parameters: {'; '.join(wrong)}") from None


def _checked(data: Any) -> Any:
    try:
        text = json.dumps(data, allow_nan=False)
        if "\\ud" in text:
            # Half of a surrogate pair is no text: nobody could send it.
            json.dumps(data, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ScriptRefused(f"returned what is not JSON: {error}") from None
    if len(text) > LARGEST_RESULT_BYTES:
        raise ScriptRefused(f"returned {len(text):,} bytes of JSON, more than 1 MB: leave it as an artifact")
    if text.count("[") + text.count("{") > DEEPEST_RESULT and _is_deeper(json.loads(text), DEEPEST_RESULT):
        raise ScriptRefused(f"returned JSON that is nested deeper than {DEEPEST_RESULT}")
    return data


def _is_deeper(value: Any, levels: int) -> bool:
    members: Iterable[Any]
    match value:
        case dict():
            members = cast("dict[str, Any]", value).values()
        case list():
            members = cast("list[Any]", value)
        case _:
            return False
    return levels == 0 or any(_is_deeper(member, levels - 1) for member in members)
