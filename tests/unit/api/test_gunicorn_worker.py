"""Our worker overrides and uses undocumented names of gunicorn. Each name has its own test case, so that a new version
of gunicorn fails with the missing name."""

import ast
import inspect
import textwrap
from types import ModuleType
from typing import Any

import pytest
from gunicorn.workers import base, gthread

from app.api import gunicorn_worker
from app.api.gunicorn_worker import DrainingWorker

WORKER_METHODS = {
    "_cap_keepalive": ["deadline"],
    "accept": ["listener"],
    "enqueue_req": ["conn"],
    "handle": ["conn"],
    "on_pending_socket_readable": ["conn", "client"],
    "set_accept_enabled": ["enabled"],
}
WORKER_ATTRIBUTES = ["alive", "app", "cfg", "nr_conns", "pending_conns", "poller", "sockets"]
CONNECTION_ATTRIBUTES = ["set_timeout", "sock", "timeout"]
OWN = {"_empty_queue", "queued_at"}


def assigned(module: ModuleType) -> set[str]:
    """The attributes that the classes of a module give to their objects."""
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}


@pytest.mark.parametrize(("name", "parameters"), WORKER_METHODS.items())
def test_gunicorns_worker_has_the_method(name: str, parameters: list[str]) -> None:
    method: Any = getattr(gthread.ThreadWorker, name, None)
    assert method is not None, f"ThreadWorker.{name} is missing"
    assert list(inspect.signature(method).parameters)[1:] == parameters, f"ThreadWorker.{name} has other parameters"


@pytest.mark.parametrize("name", WORKER_ATTRIBUTES)
def test_gunicorns_worker_has_the_attribute(name: str) -> None:
    assert name in assigned(gthread) | assigned(base), f"ThreadWorker.{name} is missing"


@pytest.mark.parametrize("name", CONNECTION_ATTRIBUTES)
def test_gunicorns_connection_has_the_name(name: str) -> None:
    known = set(dir(gthread.TConn)) | assigned(gthread)
    assert name in known, f"TConn.{name} is missing"


def test_gunicorns_connection_is_made_as_before() -> None:
    assert list(inspect.signature(gthread.TConn).parameters) == ["cfg", "sock", "client", "server"]


def test_no_other_name_of_gunicorn_is_used() -> None:
    """Keeps the lists above complete."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(DrainingWorker)))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()", "conn", "_ThreadWorker")
    }
    assert used - OWN == {*WORKER_METHODS, *WORKER_ATTRIBUTES, *CONNECTION_ATTRIBUTES}
    overridden = {name for name in vars(DrainingWorker) if inspect.isfunction(vars(DrainingWorker)[name])}
    assert overridden - OWN <= WORKER_METHODS.keys()
    assert gunicorn_worker.DrainingWorker.__mro__[1] is gthread.ThreadWorker
