"""Asks a process of its own for the declaration of a script, and for its check of parameters."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from app.jobs.errors import ParamProblem, ScriptBroken, WrongParams
from app.jobs.script_declaration import Declaration

LIMIT_S = 8.0
"""Shorter than REQUEST_TIMEOUT_S by default, so that a request can say which script did not answer."""
MOST_ANSWER_BYTES = 4 << 20
_ROOT = Path(__file__).resolve().parents[2]
# Without the settings, which hold secrets.
_ENVIRONMENT = {"PATH": os.defpath, "LANG": "C.UTF-8"}


def read_declaration(path: Path, limit_s: float = LIMIT_S) -> Declaration:
    declaration, _ = _understood(_ask(path, None, limit_s))
    return declaration


def check_params(
    path: Path, params: Mapping[str, Any], *, are_strings: bool, limit_s: float = LIMIT_S
) -> tuple[Declaration, dict[str, Any]]:
    return _understood(_ask(path, {"params": params, "are_strings": are_strings}, limit_s))


def _ask(path: Path, request: dict[str, Any] | None, limit_s: float) -> Any:
    # Files, not pipes: a grandchild that the script leaves would keep a pipe open.
    with TemporaryFile() as given, TemporaryFile() as answer:
        given.write(json.dumps(request).encode())
        given.seek(0)
        ended = _run(path, given, answer, limit_s)
        answer.seek(0)
        told = answer.read(MOST_ANSWER_BYTES + 1)
    try:
        return json.loads(told)
    except ValueError:
        raise ScriptBroken(f"It ended the process that imports it ({_end(ended)}).") from None


def _understood(values: Any) -> tuple[Declaration, dict[str, Any]]:
    try:
        if "broken" in values:
            raise ScriptBroken(str(values["broken"]))
        if "problems" in values:
            raise WrongParams([ParamProblem(**problem) for problem in values["problems"]])
        return Declaration.from_dict(values["declaration"]), dict(values["params"])
    except (KeyError, TypeError, ValueError):
        # The script itself has written to the place of the answer.
        raise ScriptBroken("It disturbs the process that imports it.") from None


def _run(path: Path, given: Any, answer: Any, limit_s: float) -> int:
    command = [sys.executable, "-m", "app.jobs.read_script", str(path)]
    child = subprocess.Popen(
        command,
        stdin=given,
        stdout=answer,
        stderr=subprocess.DEVNULL,
        cwd=_ROOT,
        env=_ENVIRONMENT,
        start_new_session=True,
    )
    try:
        return child.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise ScriptBroken(f"Importing it takes longer than {limit_s:.0f} s.") from None
    finally:
        # Also ends what the script has started.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _end(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
