"""Rules of the project that the structure of the code must follow."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[2] / "app"

# A package imports itself and packages of earlier lines. Packages on one line do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("foundation",),
    ("settings",),
    ("db",),
    ("redis_store",),
    ("users",),
    ("delivery.messages",),
    ("delivery.channels",),
    ("delivery.words",),
    ("delivery.directory",),
    ("delivery.plans",),
    ("delivery.actions",),
    ("delivery.sending",),
    ("delivery",),
    ("matching",),
    ("jobs", "roster"),
    ("realtime",),
    ("ops",),
    ("all_tables",),
    ("api", "console"),
    ("bootstrap",),
    ("cli",),
    ("__main__",),
)
HEIGHTS = {name: height for height, layer in enumerate(LAYERS) for name in layer}
# Other packages import only these modules of a feature. The packages in FEATURES may import all of its modules,
# because they put the processes together.
PUBLIC = {"service", "contract", "models"}
FEATURES = {
    "delivery": {"bootstrap"},
    "matching": {"bootstrap"},
}
# Further modules that other packages may import: errors that the HTTP layer documents, and values that are shown.
ALSO_PUBLIC = {
    ("matching", "errors"),
    ("matching", "states"),
    ("matching", "lateness"),
}
OPENS = re.compile(
    r"\b(Database|RedisBreakers|RedisClockwork|Inlet|Outlet|ExpiryEvents|PerUserLimit|Announcer|Hints|open_client"
    r"|create_engine)\("
)


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


def layer_of(name: str) -> str:
    """The layer of a module, given as `app.delivery.messages.claims` or as a symbol in it."""
    parts = name.split(".")[1:] or [name]
    inner = ".".join(parts[:2])
    return inner if inner in HEIGHTS and len(parts) > 1 else parts[0]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(APP.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(path: Path) -> set[str]:
    """Without packages, because their `__init__` is empty."""
    known = {module_of(one) for one in modules() if one.name != "__init__.py"}
    return {name for name in imports(path) if name in known and name.startswith("app.")}


@pytest.mark.parametrize("path", modules(), ids=named)
def test_imports_go_in_one_direction(path: Path) -> None:
    own = layer_of(module_of(path))
    if own == "app":
        return
    for name in imported_modules(path):
        other = layer_of(name)
        assert other == own or HEIGHTS[other] < HEIGHTS[own], f"{named(path)} imports {name} of a later layer"


def test_every_package_is_in_the_list_of_layers() -> None:
    assert {layer_of(module_of(path)) for path in modules()} - {"app"} <= HEIGHTS.keys()


def test_no_modules_import_each_other_in_circles() -> None:
    imported = {module_of(path): imported_modules(path) - {module_of(path)} for path in modules()}
    while leaves := [name for name, others in imported.items() if not others & imported.keys()]:
        for name in leaves:
            del imported[name]
    assert imported == {}


@pytest.mark.parametrize("path", modules(), ids=named)
def test_other_packages_import_only_public_modules_of_a_feature(path: Path) -> None:
    own = path.relative_to(APP).with_suffix("").parts[0]
    for name in imported_modules(path):
        feature, *inner = name.split(".")[1:]
        if feature not in FEATURES or own == feature or own in FEATURES[feature] or not inner:
            continue
        assert inner[0] in PUBLIC or (feature, inner[0]) in ALSO_PUBLIC, (
            f"{named(path)} imports {name}, which is not public"
        )


@pytest.mark.parametrize("path", modules(), ids=named)
def test_only_bootstrap_opens_connections(path: Path) -> None:
    """The packages of the stores define these classes and functions; only the composition root calls them."""
    if path.relative_to(APP).parts[0] in ("db", "redis_store", "bootstrap"):
        return
    assert OPENS.findall(code_of(path)) == []


@pytest.mark.parametrize("path", [path for path in modules() if path.name != "settings.py"], ids=named)
def test_only_settings_reads_the_environment(path: Path) -> None:
    """Writing a variable is allowed, for libraries that have no other configuration."""
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
    """Imports every module in a process without settings that must not open a socket."""
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
