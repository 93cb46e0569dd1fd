"""The modules of `app`, each read and parsed once for all rules."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

APP = Path(__file__).resolve().parents[2] / "app"


@dataclass(frozen=True)
class Module:
    path: Path

    @cached_property
    def name(self) -> str:
        """As it is imported, such as `app.delivery.messages.claims`."""
        return ".".join(self.path.relative_to(APP.parent).with_suffix("").parts).removesuffix(".__init__")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text())

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def package(self) -> str:
        """The package of `app` that it belongs to."""
        return self.name.removeprefix("app.").split(".")[0]

    def at(self, node: ast.AST) -> str:
        return f"{self.path.relative_to(APP.parent)}:{getattr(node, 'lineno', 1)}"

    @cached_property
    def imported_names(self) -> set[str]:
        """Modules and symbols, each with its full name; imports inside functions and for types count as well."""
        return set(self._imported())

    def _imported(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    @cached_property
    def imports(self) -> set[str]:
        """The modules of `app` that it imports. Packages are left out, because their `__init__` is empty."""
        return {name for name in self.imported_names if name in NAMES} - {self.name}


MODULES = [Module(path) for path in sorted(APP.rglob("*.py"))]
NAMES = {module.name for module in MODULES if module.path.name != "__init__.py"}


def modules(*packages: str) -> list[Module]:
    return [module for module in MODULES if module.package in packages] if packages else MODULES
