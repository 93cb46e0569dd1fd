"""Rules of the project that a reader would otherwise have to remember. Each test lists all places that break it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

from tests.policy.modules import APP, MODULES, NAMES, Module, modules

# A package imports itself and the packages above it in this list. Packages on one line do not import each other.
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
    ("matching.rules",),
    ("matching.store",),
    ("matching",),
    ("roster.kinds",),
    ("roster.lists",),
    ("roster.sync",),
    ("roster.people", "roster.feed"),
    ("roster",),
    ("privacy",),
    ("jobs.engine",),
    ("jobs.cluster",),
    ("jobs.checks", "jobs.city", "jobs.reports", "jobs.retention"),
    ("jobs.scripts",),
    ("jobs",),
    ("realtime",),
    ("ops",),
    ("all_tables",),
    ("api",),
    ("api.views",),
    ("console",),
    ("bootstrap",),
    ("cli",),
    ("__main__",),
)
HEIGHTS = {name: height for height, layer in enumerate(LAYERS) for name in layer}
FEATURES = {"users", "delivery", "matching", "privacy", "jobs", "roster", "realtime"}
FRONT_DOOR = {"service", "contract", "models"}
SIDE_DOORS = {"app.delivery.fetching"}
"""What few enter, and would cost memory at the front door."""
VOCABULARY = FRONT_DOOR | {"__init__", "errors", "metrics", "role", "states", "views"}
OPENERS = {
    "app.db.wake.Announcer",
    "app.db.database.Database",
    "app.redis_store.breakers.RedisBreakers",
    "app.redis_store.client.open_client",
    "app.redis_store.event_heads.EventHeads",
    "app.redis_store.events.ExpiryEvents",
    "app.redis_store.hints.Hints",
    "app.redis_store.limits.PerUserLimit",
    "app.redis_store.store.RedisClockwork",
    "app.redis_store.streams.Inlet",
    "app.redis_store.streams.Outlet",
    "app.redis_store.traces.Traces",
}
"""What opens a connection. The packages of the stores define it, and nothing but the composition root calls it."""
DRIVERS = {"psycopg", "psycopg_pool", "redis", "sqlalchemy.create_engine", "sqlalchemy.engine.create_engine"}
WHERE_CONNECTIONS_ARE_OPENED = {"db", "redis_store", "bootstrap"}


def layer_of(name: str) -> str:
    """The layer of a module, given as `app.delivery.messages.claims` or as a symbol in it."""
    parts = name.split(".")[1:] or [name]
    inner = ".".join(parts[:2])
    return inner if inner in HEIGHTS and len(parts) > 1 else parts[0]


def calls(module: Module, pattern: str) -> list[str]:
    return [
        module.at(node)
        for node in module.nodes
        if isinstance(node, ast.Call) and re.fullmatch(pattern, ast.unparse(node.func))
    ]


def test_imports_go_in_one_direction() -> None:
    wrong = [
        f"{module.name} imports {name} from above"
        for module in MODULES
        for name in module.imports
        if (own := layer_of(module.name)) != (other := layer_of(name)) and HEIGHTS[other] >= HEIGHTS[own]
    ]
    assert wrong == []


def test_every_package_has_its_layer() -> None:
    assert {layer_of(module.name) for module in MODULES} - {"app"} <= HEIGHTS.keys()


def test_no_modules_import_each_other_in_circles() -> None:
    imported = {module.name: module.imports for module in MODULES}
    while leaves := [name for name, others in imported.items() if not others & imported.keys()]:
        for name in leaves:
            del imported[name]
    assert imported == {}


def test_no_packages_import_each_other() -> None:
    package = {module.name: module.name.rpartition(".")[0] for module in MODULES}
    pairs = {(package[module.name], package[name]) for module in MODULES for name in module.imports}
    assert sorted(pair for pair in pairs if pair[0] < pair[1] and pair[::-1] in pairs) == []


def test_imports_are_written_so_that_these_rules_see_them() -> None:
    relative = [
        module.at(node)
        for module in MODULES
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and node.level > 0
    ]
    # Channels and kinds are found by their files, and a command is imported only when it runs.
    by_name = [
        place
        for module in MODULES
        if module.name not in {"app.delivery.channels.registry", "app.roster.kinds.known_kinds", "app.__main__"}
        for place in calls(module, r"(importlib\.)?import_module|__import__")
    ]
    packages = [module.at(module.tree) for module in MODULES if module.path.name == "__init__.py" and module.tree.body]
    assert (relative, by_name, packages) == ([], [], [])


def test_a_feature_is_entered_by_its_front_door() -> None:
    wrong = [
        f"{module.name} imports {name}"
        for module in MODULES
        for name in module.imports
        if _feature(name) in FEATURES - {module.package} and module.package != "bootstrap"
        if name.split(".")[2] not in FRONT_DOOR and name not in SIDE_DOORS
    ]
    assert wrong == []


def _feature(name: str) -> str:
    return name.split(".")[1]


def test_only_bootstrap_opens_connections() -> None:
    wrong = [
        f"{module.name} names {name}"
        for module in MODULES
        if module.package not in WHERE_CONNECTIONS_ARE_OPENED
        for name in _openers(module)
    ]
    assert wrong == []


def _openers(module: Module) -> Iterator[str]:
    """A type may be named where something takes it as an argument; calling it opens a connection."""
    yield from (name for name in module.imported_names if name in DRIVERS or name.split(".")[0] in DRIVERS)
    local = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in module.nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in module.nodes:
        if isinstance(node, ast.Call):
            first, _, rest = ast.unparse(node.func).partition(".")
            called = f"{local.get(first, first)}{'.' if rest else ''}{rest}"
            if any(called == opener or called.startswith(f"{opener}.") for opener in OPENERS):
                yield called


def test_the_openers_are_where_their_list_says() -> None:
    for opener in OPENERS:
        name, _, symbol = opener.rpartition(".")
        assert name in NAMES, opener
        (module,) = [module for module in MODULES if module.name == name]
        assert symbol in {getattr(node, "name", None) for node in module.tree.body}, opener


def test_only_settings_reads_the_environment() -> None:
    """Setting a variable for a library that has no other way in is not reading."""
    wrong = [
        module.name
        for module in MODULES
        if module.path.name != "settings.py"
        and re.search(r"\bos\.(?:environ(?!\[[^]]*\] = )|getenv)\b", ast.unparse(module.tree))
    ]
    assert wrong == []


def test_time_comes_from_the_database() -> None:
    clocks = r"(datetime\.)?(datetime|date)\.(now|utcnow|today)|time\.time"
    assert [place for module in modules("matching", "users") for place in calls(module, clocks)] == []


def test_services_do_not_commit() -> None:
    assert [place for module in modules(*FEATURES) for place in calls(module, r".*\.commit")] == []


def test_no_exception_is_swallowed() -> None:
    swallowed = [
        module.at(node)
        for module in MODULES
        for node in module.nodes
        if isinstance(node, ast.ExceptHandler) and all(isinstance(part, ast.Pass) for part in node.body)
    ]
    assert swallowed == []


def test_a_class_has_a_name_of_its_own() -> None:
    names = [node.name for module in MODULES for node in module.tree.body if isinstance(node, ast.ClassDef)]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_a_file_has_a_name_of_its_own() -> None:
    """Apart from the names that every feature uses, and views, which are named for what they show."""
    names = [
        module.path.name
        for module in MODULES
        if module.path.stem not in VOCABULARY and not module.name.startswith("app.api.views.")
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_importing_opens_nothing() -> None:
    """Every module is imported in a process that may not open a socket and has no settings."""
    names = [module.name for module in MODULES if module.package != "__main__"]
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
