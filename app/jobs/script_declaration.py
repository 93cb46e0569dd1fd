"""What a script declares about itself, and its own check of parameters. The module of the script is loaded here."""

import importlib.util
import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from app.foundation.field_sentences import sentence
from app.foundation.storable import flaw_of_json
from app.jobs.engine.declaration import params_model
from app.jobs.engine.task import MAX_RETRIES, TaskType
from app.jobs.errors import ParamProblem, ScriptBroken, WrongParams

MOST_RETRIES = 100
DEEPEST = 20
_ANY_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class Declaration:
    summary: str
    description: str
    task_type: TaskType
    max_retries: int
    timeout_s: float | None
    """None leaves it to the setting JOBS_TIMEOUT_S."""
    parameters: Mapping[str, Any] = field(default_factory=lambda: _ANY_OBJECT)
    """JSON schema."""

    @property
    def takes_anything(self) -> bool:
        """The script names no model, so there is nothing that it could check."""
        return self.parameters == _ANY_OBJECT

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        known = dict(values)
        task_type = TaskType(known.pop("task_type"))
        return cls(task_type=task_type, **known)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class LoadedScript:
    declaration: Declaration
    model: type[BaseModel] | None


def load(path: Path) -> LoadedScript:
    """Imports the script. Raises `ScriptBroken`, also for what a script does to end the process by an exception."""
    name = f"job_script_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "a path that ends with .py has a loader"
    module = importlib.util.module_from_spec(spec)
    # Pydantic looks here for the names in annotations.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        return _declared(module)
    except ScriptBroken:
        raise
    except BaseException as error:
        raise ScriptBroken(_told(error, path)) from None
    finally:
        sys.modules.pop(name, None)


def _told(error: BaseException, path: Path) -> str:
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno
    place = f" in line {line}" if line else ""
    return f"It cannot be imported: {type(error).__name__}{place}: {error}"[:1000]


def _declared(module: ModuleType) -> LoadedScript:
    run = getattr(module, "run", None)
    if not inspect.isfunction(run):
        raise ScriptBroken("It has no function run(params, context).")
    if len(inspect.signature(run).parameters) != 2:
        raise ScriptBroken("Its function run must take two arguments: run(params, context).")
    model = params_model(run)
    summary, _, rest = (inspect.getdoc(module) or "").partition("\n")
    declaration = Declaration(
        summary=summary.strip(),
        description=rest.strip(),
        task_type=_task_type(getattr(module, "TASK_TYPE", TaskType.IO_BOUND)),
        max_retries=_retries(getattr(module, "MAX_RETRIES", MAX_RETRIES)),
        timeout_s=_timeout(getattr(module, "TIMEOUT_S", None)),
        parameters=model.model_json_schema() if model is not None else _ANY_OBJECT,
    )
    return LoadedScript(declaration, model)


def _task_type(value: Any) -> TaskType:
    try:
        return TaskType(value)
    except ValueError:
        raise ScriptBroken("Its TASK_TYPE is not io_bound or cpu_bound.") from None


def _retries(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= MOST_RETRIES:
        raise ScriptBroken(f"Its MAX_RETRIES is not a number from 0 to {MOST_RETRIES}.")
    return int(value)


def _timeout(value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ScriptBroken("Its TIMEOUT_S is not a number above 0.")
    return float(value)


def check(script: LoadedScript, params: Mapping[str, Any], *, are_strings: bool) -> dict[str, Any]:
    """The parameters as the script gets them, as JSON. Raises `WrongParams`. `are_strings` is for values that were
    typed: they are converted, and those that begin with [ or { are JSON."""
    params = {name: _read(value) for name, value in params.items()} if are_strings else dict(params)
    checked = params if script.model is None else _validated(script.model, params, are_strings=are_strings)
    if flaw_of_json(checked, deepest=DEEPEST) is not None:
        message = "holds a character, a number or a depth that cannot be stored"
        raise WrongParams([ParamProblem("", message, "unstorable")])
    return checked


def _read(value: str) -> Any:
    if not value.startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _validated(model: type[BaseModel], params: dict[str, Any], *, are_strings: bool) -> dict[str, Any]:
    problems = [ParamProblem(name, "is not known here", "extra_forbidden") for name in _unknown(model, params)]
    try:
        if not are_strings:
            validated = model.model_validate_json(json.dumps(params), strict=True)
        elif all(isinstance(value, str) for value in params.values()):
            validated = model.model_validate_strings(params)
        else:
            validated = model.model_validate(params)
    except ValidationError as error:
        problems += [_problem(item) for item in error.errors(include_url=False, include_input=False)]
    else:
        if not problems:
            # Not the text, in which infinity becomes null.
            return validated.model_dump(mode="json", by_alias=True)
    raise WrongParams(problems)


def _unknown(model: type[BaseModel], params: Mapping[str, Any]) -> list[str]:
    """Refused although the model would ignore them: a misspelt name must not run the job with the default."""
    if model.model_config.get("extra") is not None:
        return []
    known = {name for field_name, info in model.model_fields.items() for name in (field_name, info.alias)}
    return [name for name in params if name not in known]


def _problem(item: Any) -> ParamProblem:
    return ParamProblem(".".join(str(part) for part in item["loc"]), sentence(item), str(item["type"]))
