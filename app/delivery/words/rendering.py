"""Turns a template and what an action knows into words.

Operators write templates, and what fills them comes from other services, so neither may cost more than a moment or
reach anything but the words. A template is made of text, values, conditions and loops over what was given; it calls
nothing, builds nothing, and what it does and writes is counted while it does so. By a count and not by a clock, so that
the same words come out, or none, however busy the machine is.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, UndefinedError, meta, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS

from app.foundation.errors import InvalidValue

LONGEST = 20_000
"""Characters that one template may write."""
MOST_ROUNDS = 2_000
"""Of all loops of one rendering together."""
MOST_WORK = 20_000
"""Parts of loops gone through, and what filters were given, of one rendering together."""
DEEPEST = 40
"""Jinja takes the cube of the depth to read a template."""
MOST_KEPT = 256
"""A long template takes a third of a megabyte once it is read, and each edit is another one."""
LARGEST_NUMBER = 10**15

_LEFT = "what is left"
"""Where a rendering counts; no template can say a name with a blank in it."""


@dataclass
class _Left:
    rounds: int = MOST_ROUNDS
    work: int = MOST_WORK

    def spend(self, work: int, rounds: int = 0) -> None:
        self.rounds -= rounds
        self.work -= work
        if self.rounds < 0:
            raise RenderFailed(f"The loops go round more than {MOST_ROUNDS} times.")
        if self.work < 0:
            raise RenderFailed("The template does more than one message may cost.")


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
        return _storable(_collect(_compiled(source), {**variables, _LEFT: _Left()}))
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


def _storable(written: str) -> str:
    r"""A template can spell out characters, `"\x00"` and halves of some among them, that no row can hold: found out
    by the database, they would take with them whatever else its transaction is about."""
    if not _is_storable(written):
        raise RenderFailed("The text holds a character that nobody can store.")
    return written


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _what_is_missing(source: str, variables: Mapping[str, Any]) -> str:
    missing = sorted(meta.find_undeclared_variables(_environment.parse(source)) - variables.keys())
    return (
        f"Not given: {', '.join(missing)}." if missing else "Something the template asks for is not in what was given."
    )


@lru_cache(maxsize=MOST_KEPT)
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
    level: list[nodes.Node] = [tree]
    for _ in range(DEEPEST):
        for node in level:
            if not isinstance(node, _ALLOWED):
                name = type(node).__name__
                raise TemplateInvalid("body", f"uses {name} in line {node.lineno}, which templates may not")
            if isinstance(node, nodes.Const) and isinstance(node.value, str) and not _is_storable(node.value):
                raise TemplateInvalid("body", f"spells a character in line {node.lineno} that nobody can store")
        level = [child for node in level for child in node.iter_child_nodes()]
    if level:
        raise TemplateInvalid("body", f"is nested deeper than {DEEPEST} levels in line {level[0].lineno}")


def _count_rounds(tree: nodes.Template) -> None:
    for loop in list(tree.find_all(nodes.For)):
        parts = nodes.Const(sum(1 for _ in loop.find_all(nodes.Node)), lineno=loop.lineno)
        loop.iter = nodes.Filter(loop.iter, _COUNTED, [parts], [], None, None, lineno=loop.lineno)


@pass_context
def _counted(context: Context, values: Iterable[Any], parts: int) -> Iterator[Any]:
    """The values of a loop that has so many parts."""
    left: _Left = context[_LEFT]
    for value in values:
        left.spend(parts, rounds=1)
        yield value


def _weighed(work: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose work is counted by the length of what it is given."""
    takes_environment = getattr(work, "jinja_pass_arg", None) is not None

    @pass_context
    def weigh(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        context[_LEFT].spend(1 + _length(value))
        return work(_environment, value, *args, **kwargs) if takes_environment else work(value, *args, **kwargs)

    return weigh


def _length(value: Any) -> int:
    # A letter is less work than an item.
    if isinstance(value, str):
        return len(value) // 10
    return len(cast("Sized", value)) if isinstance(value, list | dict | tuple) else 0


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

_filters: dict[str, Any] = {name: _weighed(FILTERS[name]) for name in _FILTERS}
_filters |= {"join": _weighed(_joined), "round": _weighed(_rounded), _COUNTED: _counted}

# What is constant is not worked out beforehand: nobody counts there.
_environment = _Environment(undefined=StrictUndefined, autoescape=False, finalize=_writable, optimized=False)
_environment.globals = {}
_environment.filters = _filters
_environment.tests = {name: TESTS[name] for name in _TESTS}
