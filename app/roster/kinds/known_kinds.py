"""Finds the kinds: every module in the folder `kinds` that has a `KIND`. A new kind is a new file there."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module

from app.foundation.errors import NotFound
from app.roster import kinds
from app.roster.kinds.kind import Kind, ListDeclaration, ListSource


class UnknownKind(NotFound):
    """There is no such kind of list."""

    code = "unknown_kind"


class UnknownList(NotFound):
    """This kind has no such list."""

    code = "unknown_list"


def known_kinds() -> Mapping[str, Kind]:
    modules = [import_module(f"{kinds.__name__}.{found.name}") for found in pkgutil.iter_modules(kinds.__path__)]
    declared = [module.KIND for module in modules if hasattr(module, "KIND")]
    declared.sort(key=lambda kind: kind.document_type)
    for name in ("name", "document_type"):
        values = [getattr(kind, name) for kind in declared]
        assert len(set(values)) == len(values), f"two kinds have the same {name}"
    return {kind.name: kind for kind in declared}


def kind_named(name: str) -> Kind:
    found = known_kinds().get(name)
    if found is None:
        raise UnknownKind(f"There is no kind {name!r}.")
    return found


def list_named(kind: str, name: str) -> tuple[ListSource, ListDeclaration]:
    source = kind_named(kind).source
    found = next((one for one in source.lists if one.name == name), None)
    if found is None:
        raise UnknownList(f"{kind} has no list {name!r}; it has {', '.join(one.name for one in source.lists)}.")
    return source, found
