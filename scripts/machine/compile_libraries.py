"""Compiles the largest libraries of a virtual environment ahead of their first import, and without docstrings, which
nobody reads in a running service: 3 MB in each of its processes. Run it with the Python of that environment.

Our own docstrings stay, because the documentation of the API and of jobs consists of them. So do asserts, unless Python
runs with -O. A file that was not compiled here, or has changed since, is compiled by Python as usual.
"""

import ast
import concurrent.futures
import importlib.util
import marshal
import os
import struct
import sys
import sysconfig
from pathlib import Path

PACKAGES = ("flask", "jinja2", "psycopg", "pydantic", "redis", "sqlalchemy", "structlog", "werkzeug")
DOCUMENTED = "sqlalchemy/orm"
"""Completes docstrings of its own when it is imported, and fails if it finds none. No process of ours imports it."""
CHECKED_BY_TIME = 0
"""The header of compiled files: magic number, kind of check, time and size of the source."""


def main(site_packages: Path) -> int:
    sources = [source for package in PACKAGES for source in (site_packages / package).rglob("*.py")]
    sources = [source for source in sources if not source.is_relative_to(site_packages / DOCUMENTED)]
    with concurrent.futures.ProcessPoolExecutor() as processes:
        list(processes.map(compile_source, sources, chunksize=8))
    return 0


def compile_source(source: Path) -> None:
    about = source.stat()
    code = compile(without_docstrings(source.read_bytes()), source, "exec", dont_inherit=True)
    header = struct.pack("<III", CHECKED_BY_TIME, int(about.st_mtime) & 0xFFFFFFFF, about.st_size & 0xFFFFFFFF)
    compiled = Path(importlib.util.cache_from_source(source))
    compiled.parent.mkdir(parents=True, exist_ok=True)
    unfinished = compiled.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(importlib.util.MAGIC_NUMBER + header + marshal.dumps(code))
    unfinished.replace(compiled)


def without_docstrings(source: bytes) -> ast.Module:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Module():
                match node.body:
                    case [ast.Expr(ast.Constant(str())) as text, *rest]:
                        node.body = rest or [ast.copy_location(ast.Pass(), text)]
            case _:
                pass
    return tree


if __name__ == "__main__":
    sys.exit(main(Path(sysconfig.get_path("purelib"))))
