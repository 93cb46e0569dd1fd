"""`python -m app.jobs.read_script PATH`: reads the declaration of a script, or lets it check parameters.

A short-lived process of its own, because an operator's script may do anything when it is imported. Standard input is
`null` or `{"params": …, "are_strings": …}`, standard output is one JSON object.
"""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from app.jobs.errors import ScriptBroken, WrongParams
from app.jobs.script_declaration import check, load

MOST_MEMORY = 4 << 30


def main(path: Path) -> None:
    request = json.load(sys.stdin)
    # What the script prints goes nowhere.
    answer = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    told = json.dumps(_answer(path, request)).encode()
    while told:
        told = told[os.write(answer, told) :]
    # A thread that the script has started must not keep the process alive.
    os._exit(0)


def _answer(path: Path, request: dict[str, Any] | None) -> dict[str, Any]:
    try:
        script = load(path)
        if request is None:
            return {"declaration": script.declaration.to_dict(), "params": {}}
        params = check(script, request["params"], are_strings=request["are_strings"])
        return {"declaration": script.declaration.to_dict(), "params": params}
    except ScriptBroken as error:
        return {"broken": error.message}
    except WrongParams as error:
        return {"problems": [problem.to_dict() for problem in error.problems]}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
