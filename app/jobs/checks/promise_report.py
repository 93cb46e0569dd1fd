"""The answers as a text for an operator."""

from collections.abc import Iterator, Sequence

from app.jobs.checks.ask import Example, PromiseAnswer


def promise_report(answers: Sequence[PromiseAnswer], period: str) -> str:
    return "\n".join(_lines(answers, period)) + "\n"


def _lines(answers: Sequence[PromiseAnswer], period: str) -> Iterator[str]:
    broken = [answer for answer in answers if answer.violations]
    unanswered = [answer for answer in answers if answer.unanswered]
    good = [answer for answer in answers if answer.ok]
    yield f"Promises, {period}"
    yield f"{len(answers)} questions: {len(good)} without a violation, {len(broken)} with, {len(unanswered)} unanswered"
    for answer in broken:
        yield from ("", f"VIOLATED: {answer.name}: {answer.violations}", f"  promise: {answer.promise}")
        yield from (f"  means:   {answer.means}", f"  do next: {answer.advice}")
        yield from (f"  {_words(example)}" for example in answer.examples if example)
        if (left := (answer.violations or 0) - len(answer.examples)) > 0:
            yield f"  and {left} more"
    for answer in unanswered:
        yield from ("", f"NOT ANSWERED: {answer.name}", f"  {answer.unanswered}")
    yield from ("", "Without a violation:")
    yield from (f"  {answer.name}" for answer in good)


def _words(example: Example) -> str:
    return ", ".join(f"{name.removesuffix('_id')} {value}" for name, value in example.items())
