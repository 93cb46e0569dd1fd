"""What templates can do, what they cannot do, and that they are fast and leak no values."""

import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from app.delivery.words.rendering import (
    DEEPEST,
    LONGEST,
    MOST_KEPT,
    RenderFailed,
    TemplateInvalid,
    Words,
    check,
    preview_words,
    render,
)
from app.foundation.errors import InvalidValues


def fill(source: str, **variables: Any) -> str:
    return render(Words("", source), variables).body


class TookTooLong(BaseException):
    """Not an `Exception`, because rendering converts those to refusals."""


@contextmanager
def stopped_after(seconds: int) -> Iterator[None]:
    """Ends a test that would run for hours. Refusals take milliseconds, so this is no measurement."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("source", "variables", "written"),
    [
        ("{{ student }} yola çıktı!", {"student": "Ahmet"}, "Ahmet yola çıktı!"),
        ("{{ student }} yola çıktı!", {"student": "{{ phone }} <b>&"}, "{{ phone }} <b>& yola çıktı!"),
        ("{{ phone or 'kayıtlı değil' }}", {"phone": None}, "kayıtlı değil"),
        ("{{ degrees | round(1) }} °C", {"degrees": 3.14159}, "3.1 °C"),
        ("{% for one in xs %}{{ loop.index }}. {{ one }}\n{% else %}-{% endfor %}", {"xs": ["a", "b"]}, "1. a\n2. b\n"),
        ("{{ xs | join(', ') }}", {"xs": ["süt", 2]}, "süt, 2"),
        ("{% for key, one in at | dictsort %}{{ key }}={{ one }};{% endfor %}", {"at": {"b": 2, "a": 1}}, "a=1;b=2;"),
        ("{{ device.name | default('?') }}{{ missing | default('-') }}", {"device": {}}, "?-"),
        ("{{ (n - 1) * 2 // 3 % 5 + n / 2 }}", {"n": 10}, "6.0"),
        ("{% raw %}{{ x }}{% endraw %}{# nothing #}", {}, "{{ x }}"),
    ],
)
def test_template_is_filled(source: str, variables: dict[str, Any], written: str):
    assert fill(source, **variables) == written


def test_missing_variable_is_named():
    with pytest.raises(RenderFailed, match=r"^Not given: elder, phone\.$"):
        fill("{{ elder }} {{ phone }} {{ student }}", student="Ahmet")


@pytest.mark.parametrize(
    "source",
    ["{{ phones[name] }}", "{{ name + 1 }}", "{{ name.surname }}", "{{ 1 / (name == '') }}", "{{ 1 | round(name) }}"],
)
def test_values_are_not_in_errors(source: str):
    with pytest.raises(RenderFailed) as caught:
        fill(source, phones={}, name="Ayşe Yılmaz")
    assert "Ayşe" not in caught.value.message


def test_texts_are_not_in_the_repr():
    assert "Ayşe" not in repr(render(Words("{{ name }}", "{{ name }}"), {"name": "Ayşe"}))


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''.__class__ }}",
        "{{ one.__init__.__globals__ }}",
        "{{ one | attr('__class__') }}",
        "{{ self._TemplateReference__context }}",
        "{{ xs.append(1) }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ lipsum() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% set one = 2 %}",
        "{% macro f() %}{% endmacro %}",
        "{{ one }}{{ xs }}",
        "{{ none }}",
    ],
)
def test_template_cannot_reach_python(source: str):
    with pytest.raises((RenderFailed, TemplateInvalid)):
        fill(source, one=1, xs=[1])


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 1000000000 }}",
        "{{ 'a' + 'a' }}",
        "{{ 9 ** 9 ** 9 ** 9 }}",
        "{{ n * n * n * n * n * n * n * n }}",
        "{{ '%0999999999d' % 1 }}",
        "{{ '%0999999999d' is odd }}",
        "{{ '%0999999999d' is divisibleby(1) }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ 'a' in range(10000000000) }}",
        "{% for i in range(1000000000) %}x{% endfor %}",
        "{% for a in xs %}{% for b in xs %}{% for c in xs %}{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in xs %}" * 25 + "{% endfor %}" * 25,
        "{% for a in xs recursive %}{{ loop(xs) }}{% endfor %}",
        "{% for a in [[xs, xs], [xs, xs]] %}{% for b in a %}{% for c in b %}{% for d in xs %}.{% endfor %}{% endfor %}"
        "{% endfor %}{% endfor %}",
        "{{ [long] | join | trim }}{{ long }}{{ long }}",
        "{{ xs | join(long) }}",
        "{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}",
        "{{ " + "not " * 50_000 + "1 }}",
        "{{ " + "9" * 5_000 + " }}",
        "{% if n %}" * 300 + "{% endif %}" * 300,
        "a" * (LONGEST + 1),
        "{{ xs | first | default('x')" + " | title" * 300 + " }}",
        "{% for a in xs %}{% if " + " and ".join(["long | title == long | upper"] * 30) + " %}{% endif %}{% endfor %}",
        "{% for a in xs %}{% if " + " and ".join(["'y' not in long"] * 35) + " %}{% endif %}{% endfor %}",
        "{% for a in xs %}{{ xs | join | trim | first }}{% endfor %}",
        "{% for a in xs %}{% endfor %}" * 3,
        "{{" * 5_000,
        "{{" + " " * 9_998,
        "{% raw %}" * 1_000,
    ],
    ids=lambda source: source[:40],
)
def test_expensive_template_is_refused(source: str):
    with stopped_after(30), pytest.raises((RenderFailed, TemplateInvalid)):
        fill(source, xs=list(range(1_000)), n=10**14, long="x" * 9_000)


@pytest.mark.parametrize(
    "source", [r'{{ "\x00" }}', r'{{ "\ud800" }}', r"{{ name ~ '\udfff' }}", "{{ nul }}", r"{{ ['\x00'] | join }}"]
)
def test_text_that_cannot_be_stored_is_refused(source: str):
    with pytest.raises((RenderFailed, TemplateInvalid)):
        fill(source, nul="\0", name="Ayşe")


def test_compiled_templates_do_not_fill_the_memory():
    """Blocks instead of bytes, because counting bytes makes the test four times slower."""

    def blocks_after(numbers: range) -> int:
        for number in numbers:
            check(Words("", f"{{{{ student }}}} {number}"))
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks_after(range(0))
    full = blocks_after(range(MOST_KEPT)) - before
    assert blocks_after(range(MOST_KEPT, MOST_KEPT + 150)) - before < 1.2 * full


def test_previews_of_words_keep_nothing():
    """Each pause in typing is one more text, and would put a template in use out of the cache."""

    def preview(number: int) -> int:
        preview_words(Words("", f"{{{{ student }}}}, {number}"), {"student": "Ahmet"})
        gc.collect()
        return sys.getallocatedblocks()

    before = preview(0)
    assert max(preview(number) for number in range(1, 21)) - before < 20 * 100


def test_preview_of_words_has_the_limits_of_a_template():
    with pytest.raises(InvalidValues) as found:
        preview_words(Words("{{ a", "{{ b() }}"), {})
    assert list(found.value.problems) == ["subject", "body"]
    with pytest.raises(RenderFailed, match="go round more than"):
        preview_words(Words("", "{% for a in b %}{% for c in b %}{{ c }}{% endfor %}{% endfor %}"), {"b": [1] * 60})


def test_loop_over_a_long_list_is_within_the_budget():
    rows = [{"name": "süt", "count": 2, "unit": "kutu"}] * 300
    source = "{% for one in rows %}{{ one.name | upper }}: {{ one.count }} {{ one.unit | default('-') }}\n{% endfor %}"
    assert len(fill(source, rows=rows).splitlines()) == 300


@pytest.mark.parametrize(
    ("words", "field", "part"),
    [
        (Words("{{ a", "b"), "subject", "line 1"),
        (Words("a", "b\n{% if %}"), "body", "line 2"),
        (Words("a", "{{ b | shout }}"), "body", "No filter named 'shout'"),
        (Words("a", "{{ b() }}"), "body", "uses Call in line 1"),
        (Words("a", "{% endfor %}"), "body", "endfor"),
        (Words("a", "{% if c %}b"), "body", "if has no endif"),
        # Jinja itself finds these only when their branch is rendered.
        (Words("a", "{% if c %}{{ b | shout }}{% endif %}"), "body", "No filter named 'shout'"),
        (
            Words("{% for x in c %}{% if x %}{{ (b if x else x | shout) }}{% endif %}{% endfor %}", "b"),
            "subject",
            "shout",
        ),
        (Words("a", "{% if c %}{% if b is loud %}{% endif %}{% endif %}"), "body", "No test named 'loud'"),
        (Words("a", "{% if c %}{{ b | attr('x') }}{% endif %}"), "body", "No filter named 'attr'"),
        (Words(r"{{ a or '\x00' }}", "b"), "subject", "in line 1 that nobody can store"),
        (Words("a", "{% if b %}" * DEEPEST + "{{ b() }}" + "{% endif %}" * DEEPEST), "body", "deeper than 40 levels"),
    ],
)
def test_error_in_a_template_names_field_and_line(words: Words, field: str, part: str):
    with pytest.raises(TemplateInvalid) as caught:
        check(words)
    assert caught.value.field == field
    assert part in caught.value.message


def test_invalid_template_fails_in_rendering():
    with pytest.raises(RenderFailed):
        fill("{{ a")
