"""Turns a template and what an action knows into words.

Operators write templates, and what fills them comes from other services, so neither may cost more than a moment or
reach anything but the words. A template is made of text, values, conditions and loops over what was given; it calls
nothing, builds nothing, and what it writes is counted while it writes.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, UndefinedError, meta, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS

from app.errors import InvalidValue

LONGEST = 20_000
"""Characters that one template may write."""
MOST_ROUNDS = 2_000
"""Of all loops of one rendering together."""
LARGEST_NUMBER = 10**15

_ROUNDS = "rounds left"
"""Where a rendering counts its rounds; no template can say a name with a blank in it."""


@dataclass(frozen=True)
class Words:
    subject: str = field(repr=False)
    body: str = field(repr=False)


class TemplateInvalid(InvalidValue):
    """The template cannot be read, or says more than templates may."""


class RenderFailed(InvalidValue):
    """The template cannot be filled with these variables. The message names variables and never what is in them."""

    def __init__(self, message: str) -> None:
        super().__init__("variables", message)


def render(source: Words, variables: Mapping[str, Any]) -> Words:
    return Words(_fill(source.subject, variables), _fill(source.body, variables))


def check(source: Words) -> None:
    """Tells whoever writes a template what is wrong with it."""
    for name in ("subject", "body"):
        try:
            _compiled(getattr(source, name))
        except TemplateInvalid as error:
            raise TemplateInvalid(name, error.message) from None


def _fill(source: str, variables: Mapping[str, Any]) -> str:
    try:
        return _collect(_compiled(source), {**variables, _ROUNDS: [MOST_ROUNDS]})
    except RenderFailed:
        raise
    except TemplateInvalid:
        raise RenderFailed("The template cannot be read.") from None
    except UndefinedError:
        raise RenderFailed(_what_is_missing(source, variables)) from None
    except Exception as error:
        # The text of the error may quote what was given; its kind does not.
        raise RenderFailed(f"The template cannot be filled with what was given ({type(error).__name__}).") from None


def _collect(template: Template, variables: dict[str, Any]) -> str:
    written: list[str] = []
    length = 0
    for piece in template.generate(variables):
        length += len(piece)
        if length > LONGEST:
            raise RenderFailed(f"The text is longer than {LONGEST} characters.")
        written.append(piece)
    return "".join(written)


def _what_is_missing(source: str, variables: Mapping[str, Any]) -> str:
    missing = sorted(meta.find_undeclared_variables(_environment.parse(source)) - variables.keys())
    return (
        f"Not given: {', '.join(missing)}." if missing else "Something the template asks for is not in what was given."
    )


@lru_cache(maxsize=2048)
def _compiled(source: str) -> Template:
    try:
        tree = _environment.parse(source)
        _check_nodes(tree)
        _count_rounds(tree)
        return Template.from_code(_environment, _environment.compile(tree), {}, None)
    except TemplateInvalid:
        raise
    except TemplateSyntaxError as error:
        raise TemplateInvalid("body", f"cannot be read: {error.message} (line {error.lineno})") from None
    except Exception as error:
        # Python's own limits: blocks nested too deep, numbers too long.
        raise TemplateInvalid("body", f"cannot be read ({type(error).__name__})") from None


_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If, nodes.For, nodes.CondExpr,
    nodes.Filter, nodes.Test, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Getattr,
    nodes.Getitem, nodes.Slice, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg,
    nodes.Pos, nodes.List, nodes.Tuple, nodes.Keyword,
)  # fmt: skip


def _check_nodes(tree: nodes.Template) -> None:
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, _ALLOWED):
            name = type(node).__name__
            raise TemplateInvalid("body", f"uses {name} in line {node.lineno}, which templates may not")


def _count_rounds(tree: nodes.Template) -> None:
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, _COUNTED, [], [], None, None, lineno=loop.lineno)


@pass_context
def _counted(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    left = context[_ROUNDS]
    for value in values:
        left[0] -= 1
        if left[0] < 0:
            raise RenderFailed(f"The loops go round more than {MOST_ROUNDS} times.")
        yield value


def _joined(values: Iterable[Any], separator: str = "") -> str:
    """Items of a list with something between them; a string is written as it is."""
    pieces = [str(_writable(value)) for value in values]
    separator = str(_writable(separator))
    if sum(map(len, pieces)) + len(separator) * len(pieces) > LONGEST:
        raise RenderFailed(f"The text is longer than {LONGEST} characters.")
    return separator.join(pieces)


def _rounded(value: float, digits: int = 0) -> float:
    return round(_number(value), min(max(int(digits), 0), 9))


def _writable(value: Any) -> Any:
    """Words and numbers are written; a list or an object as Python spells it would be nobody's words."""
    if isinstance(value, StrictUndefined):
        return str(value)
    if value is None or not isinstance(value, str | int | float):
        raise RenderFailed("Something the template writes is neither text nor a number.")
    return value


def _number(value: Any) -> Any:
    """Texts and lists can be multiplied and added too, to any length; large whole numbers likewise."""
    if isinstance(value, StrictUndefined):
        return value + 0
    if not isinstance(value, int | float) or (math.isfinite(value) and abs(value) > LARGEST_NUMBER):
        raise RenderFailed("The template calculates with something that is no number, or too large a one.")
    return value


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%"])

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        return super().call_binop(context, operator, _number(left), _number(right))

    def call(self, *_args: Any, **_kwargs: Any) -> Any:
        raise SecurityError("templates call nothing")


_COUNTED = "(counted)"
_FILTERS = (
    "abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last", "length",
    "lower", "title", "trim", "truncate", "upper",
)  # fmt: skip

# Those that calculate are missing: `%` writes a text of any length too.
_TESTS = (
    "boolean", "defined", "eq", "equalto", "==", "false", "float", "ge", ">=", "gt", ">", "in", "integer", "le", "<=",
    "lt", "<", "mapping", "ne", "!=", "none", "number", "sequence", "string", "true", "undefined",
)  # fmt: skip

_filters: dict[str, Any] = {name: FILTERS[name] for name in _FILTERS}
_filters |= {"join": _joined, "round": _rounded, _COUNTED: _counted}

_environment = _Environment(undefined=StrictUndefined, autoescape=False, finalize=_writable)
_environment.globals = {}
_environment.filters = _filters
_environment.tests = {name: TESTS[name] for name in _TESTS}
