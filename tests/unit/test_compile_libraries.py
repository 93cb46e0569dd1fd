"""Libraries are compiled ahead of their first import, without docstrings."""

import os
import subprocess
import sys
from pathlib import Path

from machine.compile_libraries import compile_source
from psycopg import Connection as Psycopg
from pydantic import BaseModel
from redis import Redis
from sqlalchemy import Engine

SOURCE = '''"""The module."""
from __future__ import annotations

class Empty(Exception):
    """Nothing else."""

class Full:
    """A class."""
    about = """not a docstring"""
    async def wait(self) -> Undefined:
        """Waits."""
        return self.about

def check(number: int) -> int:
    """Checks."""
    assert number > 0, "too small"
    return number
'''
SHOW = """
import library, asyncio
print([one.__doc__ for one in (library, library.Empty, library.Full, library.Full.wait, library.check)])
print(asyncio.run(library.Full().wait()), library.check(3))
try:
    library.check(0)
except AssertionError as error:
    print("line", error.__traceback__.tb_next.tb_lineno, error)
"""


def shown(folder: Path) -> list[str]:
    """By a Python that may not write, as in a container."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_compiled_library_does_the_same_without_docstrings(tmp_path: Path) -> None:
    source = tmp_path / "library.py"
    source.write_text(SOURCE)
    documented, *does = shown(tmp_path)
    assert documented == "['The module.', 'Nothing else.', 'A class.', 'Waits.', 'Checks.']"
    compile_source(source)
    assert shown(tmp_path) == ["[None, None, None, None, None]", *does]
    assert does == ["not a docstring 3", "line 16 too small"]


def test_library_that_has_changed_since_is_compiled_by_python(tmp_path: Path) -> None:
    source = tmp_path / "library.py"
    source.write_text(SOURCE)
    compile_source(source)
    source.write_text(SOURCE.replace("Checks.", "Checks it."))
    assert "'Checks it.'" in shown(tmp_path)[0]


def test_every_part_of_sqlalchemy_can_be_imported() -> None:
    """Scripts of jobs may need what our processes do not."""
    subprocess.run([sys.executable, "-c", "import sqlalchemy.orm, sqlalchemy.ext.asyncio"], check=True)


def test_libraries_of_this_environment_were_compiled_when_they_were_installed() -> None:
    assert [one.__doc__ for one in (Engine.connect, BaseModel, Redis.get, Psycopg.execute)] == [None] * 4
