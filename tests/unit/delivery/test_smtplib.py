"""Our connection to a mail server overrides and uses names of smtplib, most of which are not documented. Each is tried
by itself, so that a new version of Python fails with the name that is gone."""

import ast
import inspect
import smtplib
import textwrap

import pytest

from app.delivery.channels.smtp import Connection

OVERRIDDEN = {
    "connect": ["host", "port", "source_address"],
    "getreply": [],
    "send": ["s"],
}
USED = {
    "close": [],
    "docmd": ["cmd", "args"],
    "ehlo": ["name"],
    "has_extn": ["opt"],
    "putcmd": ["cmd", "args"],
    "starttls": ["context"],
}
ATTRIBUTES = {"esmtp_features", "file", "sock"}


def tree_of(function: object) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(function)))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("name", "parameters"), (OVERRIDDEN | USED).items())
def test_smtplib_has_the_method(name: str, parameters: list[str]) -> None:
    method = getattr(smtplib.SMTP, name, None)
    assert method is not None, f"SMTP.{name} is gone"
    taken = [parameter for parameter in inspect.signature(method).parameters if parameter != "self"]
    assert set(parameters) <= set(taken), f"SMTP.{name} takes something else: {taken}"


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_an_overridden_method_takes_what_smtplib_gives_it(name: str) -> None:
    ours, theirs = (list(inspect.signature(getattr(one, name)).parameters) for one in (Connection, smtplib.SMTP))
    assert ours == theirs, f"SMTP.{name} takes {theirs}"


@pytest.mark.parametrize("name", sorted(ATTRIBUTES))
def test_smtplib_has_the_attribute(name: str) -> None:
    given = {
        node.attr
        for node in ast.walk(tree_of(smtplib.SMTP))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    assert name in given | set(vars(smtplib.SMTP)), f"SMTP.{name} is gone"


@pytest.mark.parametrize(
    ("caller", "called"), [("__init__", "connect"), ("docmd", "getreply"), ("docmd", "putcmd"), ("putcmd", "send")]
)
def test_smtplib_calls_what_we_override(caller: str, called: str) -> None:
    source = inspect.getsource(getattr(smtplib.SMTP, caller))
    assert f"self.{called}(" in source, f"SMTP.{caller} does not call {called}"


def test_smtplib_reads_replies_from_a_file_that_is_there() -> None:
    """`getreply` opens the file before smtplib would, and STARTTLS begins a new one."""
    assert "if self.file is None" in inspect.getsource(smtplib.SMTP.getreply)
    assert "self.file = None" in inspect.getsource(smtplib.SMTP.starttls)


def test_no_other_name_of_smtplib_is_used() -> None:
    """So that the lists above stay complete."""
    used = {
        node.attr
        for node in ast.walk(tree_of(Connection))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()")
    }
    theirs = {name for name in used if name in ATTRIBUTES or name in dir(smtplib.SMTP)} - {"__init__"}
    assert theirs | {"connect"} == {*OVERRIDDEN, *USED, *ATTRIBUTES}
    assert {name for name in vars(Connection) if name in dir(smtplib.SMTP) and not name.startswith("__")} == set(
        OVERRIDDEN
    )
    assert Connection.__mro__[1] is smtplib.SMTP
