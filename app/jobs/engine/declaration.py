"""What a script says about its parameters."""

from collections.abc import Callable
from typing import Any, get_type_hints

from pydantic import BaseModel

Run = Callable[..., Any]


def params_model(run: Run) -> type[BaseModel] | None:
    """The model that `run` names for its first argument. A script that names none takes any parameters as a dict."""
    hints = get_type_hints(run)
    first = next(iter(run.__code__.co_varnames[: run.__code__.co_argcount]), None)
    declared = hints.get(first) if first is not None else None
    return declared if isinstance(declared, type) and issubclass(declared, BaseModel) else None
