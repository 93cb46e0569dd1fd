"""Fills a template with the variables of an action.

Operators write the templates and other services send the variables, so a rendering has a bounded cost and can read only
its variables. A template holds text, values, conditions and loops; it cannot call functions or define anything. Its
work and its output are counted during the rendering. The bound is a count and not a time limit, so that the result is
the same on a busy machine. `docs/decisions/template-language.md` explains the choice of Jinja.
"""

import math
import re
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

from app.foundation.errors import InvalidValue, InvalidValues
from app.foundation.storable import flaw_of_text

LONGEST = 20_000
"""The highest number of characters in the output of one template."""
MOST_ROUNDS = 2_000
"""The highest number of rounds of all loops in one rendering."""
MOST_WORK = 20_000
"""The work budget of one rendering. Each round of a loop costs the number of its template nodes, and each filter costs
the size of its input."""
DEEPEST = 40
"""The highest depth of nesting, because Jinja's time to compile a template grows with the cube of its depth."""
MOST_KEPT = 256
"""The size of the cache of compiled templates. A long one takes a third of a megabyte, and each edit adds one."""
LARGEST_NUMBER = 10**15

_BUDGET = "work budget"
"""The variable that holds the budget of a rendering. A template cannot use it, because its name has a space."""


@dataclass
class _Budget:
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
    """The template has a syntax error or uses something that templates may not use."""


class RenderFailed(InvalidValue):
    """The template cannot be filled with these variables. The message may name variables, but never their values."""

    def __init__(self, message: str) -> None:
        super().__init__("variables", message)


def render(source: Words, variables: Mapping[str, Any]) -> Words:
    return Words(_fill(source.subject, variables), _fill(source.body, variables))


def preview_words(source: Words, variables: Mapping[str, Any]) -> Words:
    """Renders words that are not stored. Whoever types them asks again and again, so nothing is kept: the cache holds
    the templates that are in use."""
    compiled: dict[str, Template] = {}
    problems: dict[str, str] = {}
    for name in ("subject", "body"):
        try:
            compiled[name] = _compile(getattr(source, name))
        except TemplateInvalid as error:
            problems[name] = error.message
    if problems:
        raise InvalidValues(problems)
    return Words(**{name: _fill(getattr(source, name), variables, template) for name, template in compiled.items()})


def check(source: Words) -> None:
    """Raises `TemplateInvalid` with the field and the line, for the author of the template."""
    for name in ("subject", "body"):
        try:
            _compiled(getattr(source, name))
        except TemplateInvalid as error:
            raise TemplateInvalid(name, error.message) from None


def _fill(source: str, variables: Mapping[str, Any], template: Template | None = None) -> str:
    try:
        return _storable(_collect(template or _compiled(source), {**variables, _BUDGET: _Budget()}))
    except RenderFailed:
        raise
    except TemplateInvalid:
        raise RenderFailed("The template cannot be read.") from None
    except UndefinedError:
        raise RenderFailed(_missing_variables(source, variables)) from None
    except Exception as error:
        # The text of the error may quote the value of a variable, so only the name of its class is shown.
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
    r"""Refuses NUL and unpaired surrogates, which a template can write as `"\x00"` and `"\ud800"`.

    PostgreSQL stores neither, and its error would roll back the whole transaction.
    """
    if flaw_of_text(written) is not None:
        raise RenderFailed("The text holds a character that nobody can store.")
    return written


def _missing_variables(source: str, variables: Mapping[str, Any]) -> str:
    missing = sorted(meta.find_undeclared_variables(_environment.parse(source)) - variables.keys())
    return (
        f"Not given: {', '.join(missing)}." if missing else "Something the template asks for is not in what was given."
    )


def _compile(source: str) -> Template:
    try:
        tree = _environment.parse(source)
        _check_nodes(tree)
        _count_rounds(tree)
        return Template.from_code(_environment, _environment.compile(tree), {}, None)
    except TemplateInvalid:
        raise
    except TemplateSyntaxError as error:
        raise TemplateInvalid("body", _syntax_problem(error)) from None
    except Exception as error:
        # Limits of Python: recursion, nested blocks, digits of a number.
        raise TemplateInvalid("body", f"cannot be read ({type(error).__name__})") from None


_compiled = lru_cache(maxsize=MOST_KEPT)(_compile)


def _syntax_problem(error: TemplateSyntaxError) -> str:
    """In our words: Jinja's change with its versions, and may quote the template."""
    unclosed = re.search(r"needs to be closed is '(\w+)'", str(error.message))
    unknown = re.search(r"unknown tag '(\w+)'", str(error.message))
    if unclosed is not None:
        reason = f"{unclosed[1]} has no end{unclosed[1]}"
    elif unknown is not None:
        reason = f"the tag {unknown[1]} has no meaning here"
    else:
        reason = "something is not closed, or is not part of templates"
    return f"cannot be read: {reason} (line {error.lineno})"


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
            # Jinja looks for these only when the branch is rendered that uses them.
            if isinstance(node, nodes.Filter) and node.name not in _environment.filters:
                raise TemplateInvalid("body", f"cannot be read: No filter named {node.name!r} (line {node.lineno})")
            if isinstance(node, nodes.Test) and node.name not in _environment.tests:
                raise TemplateInvalid("body", f"cannot be read: No test named {node.name!r} (line {node.lineno})")
            if isinstance(node, nodes.Const) and isinstance(node.value, str) and flaw_of_text(node.value) is not None:
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
    """Yields the values of a loop and charges `parts` template nodes for each round."""
    budget: _Budget = context[_BUDGET]
    for value in values:
        budget.spend(parts, rounds=1)
        yield value


def _charged(work: Callable[..., Any]) -> Callable[..., Any]:
    """Charges a filter for the size of its input."""
    takes_environment = getattr(work, "jinja_pass_arg", None) is not None

    @pass_context
    def charge(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        context[_BUDGET].spend(1 + _length(value))
        return work(_environment, value, *args, **kwargs) if takes_environment else work(value, *args, **kwargs)

    return charge


def _length(value: Any) -> int:
    # A character costs a tenth of an item.
    if isinstance(value, str):
        return len(value) // 10
    return len(cast("Sized", value)) if isinstance(value, list | dict | tuple) else 0


def _joined(values: Iterable[Any], separator: str = "") -> str:
    """Joins the items of a list. The length is checked before the text is built."""
    pieces = [str(_writable(value)) for value in values]
    separator = str(_writable(separator))
    if sum(map(len, pieces)) + len(separator) * len(pieces) > LONGEST:
        raise RenderFailed(f"The text is longer than {LONGEST} characters.")
    return separator.join(pieces)


def _rounded(value: float, digits: int = 0) -> float:
    return round(_number(value), min(max(int(digits), 0), 9))


def _writable(value: Any) -> Any:
    """Only text and numbers can be written, because a reader would not understand the Python form of other values."""
    if isinstance(value, StrictUndefined):
        return str(value)
    if value is None or not isinstance(value, str | int | float):
        raise RenderFailed("Something the template writes is neither text nor a number.")
    return value


def _number(value: Any) -> Any:
    """Accepts only numbers of limited size, because `*` and `+` could make texts, lists and integers of any size."""
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

# Tests that calculate (`odd`, `even`, `divisibleby`) are left out: they use `%`, which formats a text to any length.
_TESTS = (
    "boolean", "defined", "eq", "equalto", "==", "false", "float", "ge", ">=", "gt", ">", "in", "integer", "le", "<=",
    "lt", "<", "mapping", "ne", "!=", "none", "number", "sequence", "string", "true", "undefined",
)  # fmt: skip

_filters: dict[str, Any] = {name: _charged(FILTERS[name]) for name in _FILTERS}
_filters |= {"join": _charged(_joined), "round": _charged(_rounded), _COUNTED: _counted}

# No constant folding: it would run at compile time, outside the work budget.
_environment = _Environment(undefined=StrictUndefined, autoescape=False, finalize=_writable, optimized=False)
_environment.globals = {}
_environment.filters = _filters
_environment.tests = {name: TESTS[name] for name in _TESTS}
