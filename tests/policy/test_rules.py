"""Rules of the house that a reader would otherwise have to remember."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[2] / "app"
FEATURES = ("matching", "delivery", "users", "redis_store")
# Who may look behind whose door. Everything else goes through a service function, a contract or a table.
DOORS = {
    "delivery": {
        "audit",
        "backlog",
        "contract",
        "dead_letters",
        "discard",
        "entries",
        "errors",
        "objectives",
        "inbox",
        "models",
        "progress",
        "redrive",
        "requested",
        "service",
        "steps",
        "verification",
    },
    "matching": {"commands", "contract", "rules", "states", "models", "errors", "lateness"},
}

# Parts of a feature that have the same doors of their own.
ROOMS = {"delivery": {"actions", "channels", "directory", "plans"}}

# The composition root chooses the store; whoever runs the processes looks at their metrics and puts in what is shipped.
OWN_KEYS = {"bootstrap.py": {"store"}, "ops": {"metrics", "role", "shipped"}}


def modules(*folders: str) -> list[Path]:
    roots = [APP / folder for folder in folders] if folders else [APP]
    return sorted(path for root in roots for path in root.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def code_of(path: Path) -> str:
    """The source without comments and strings."""
    tree = ast.parse(path.read_text())
    return ast.unparse(tree)


def named(path: Path) -> str:
    return str(path.relative_to(APP.parent))


@pytest.mark.parametrize("path", modules(*FEATURES), ids=named)
def test_features_do_not_know_the_layers_above_them(path: Path) -> None:
    above = re.compile(r"app\.(api|console|ops|bootstrap)\b")
    # A role is an entry point, and the only place in a feature where everything is put together.
    found = [] if path.name == "role.py" else [name for name in imports(path) if above.match(name)]
    assert found == []


@pytest.mark.parametrize("path", modules(), ids=named)
def test_features_meet_at_their_doors(path: Path) -> None:
    own = path.relative_to(APP).parts[0]
    for name in imports(path):
        parts = name.split(".")
        if len(parts) >= 3 and parts[2] in ROOMS.get(parts[1], ()):
            del parts[2]
        if len(parts) >= 3 and parts[0] == "app" and parts[1] in DOORS and parts[1] != own:
            allowed = DOORS[parts[1]] | OWN_KEYS.get(own, set())
            assert parts[2] in allowed, f"{named(path)} reaches into {name}"


@pytest.mark.parametrize("path", [path for path in modules() if path.name != "settings.py"], ids=named)
def test_only_settings_reads_the_environment(path: Path) -> None:
    """Setting a variable for a library that has no other way in is not reading."""
    found = re.findall(r"\bos\.(?:environ(?!\[[^]]*\] = )|getenv)\b", code_of(path))
    assert found == []


@pytest.mark.parametrize("path", modules("matching", "users"), ids=named)
def test_time_comes_from_the_database(path: Path) -> None:
    assert not re.search(r"datetime\.(now|utcnow|today)\(|\btime\.time\(", code_of(path))


@pytest.mark.parametrize("path", modules("matching", "delivery", "users"), ids=named)
def test_services_do_not_commit(path: Path) -> None:
    assert ".commit()" not in code_of(path)


@pytest.mark.parametrize("path", modules(), ids=named)
def test_no_exception_is_swallowed(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ExceptHandler):
            assert not all(isinstance(part, ast.Pass) for part in node.body), f"{named(path)}:{node.lineno}"


def test_importing_opens_nothing() -> None:
    """Every module is imported in a process that may not open a socket and has no settings."""
    names = [".".join(path.relative_to(APP.parent).with_suffix("").parts) for path in modules()]
    names = [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]
    program = (
        "import importlib, socket, sys\n"
        "def refuse(*_args, **_kwargs): raise SystemExit('a socket was opened while importing')\n"
        "socket.socket.connect = refuse\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=APP.parent, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
