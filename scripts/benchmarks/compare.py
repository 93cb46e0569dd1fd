"""`scripts/bench compare OLD.json NEW.json`: what a change of the code costs, by the ratios to floor and rival.

Two runs meet different noise, but within a run all meet the same. So not the figures of ours are compared but their
ratios to those of the floor, or of the rival where there is no floor. Uses the standard library only.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import number

LEAST_MARGIN, UNKNOWN_MARGIN, WANTED_MARGIN = 0.03, 0.08, 0.10
"""The machine changes ratios a little even between runs without scatter; figures that were measured once have no known
scatter; a change of 10 % should be seen."""
BETTER, SAME, WORSE, UNKNOWN = "better", "same", "worse", "–"
HEADINGS = ("measurement", "ours", "", "ours/floor", "", "rival/ours", "", "new/old", "margin", "verdict")

Row = dict[str, Any]
Rows = dict[tuple[str, str], Row]


class BadFile(Exception):
    """A file that cannot be compared. The message says what to do."""


@dataclass(frozen=True)
class Verdict:
    word: str
    change: float | None = None
    """The new ratio to floor or rival, relative to the old one."""
    margin: float | None = None
    """A change by less is the same."""


# ---- one row ----


def judge(old: Row, new: Row) -> Verdict:
    if _never_came(old) or _never_came(new):
        return Verdict(_by_truth(not _never_came(old), not _never_came(new)))
    for ratio, beside, of_ours in (("ours_by_floor", "floor", True), ("rival_by_ours", "rival", False)):
        before, after = old[ratio], new[ratio]
        if before and after:
            change = after / before
            margin = _margin([old["ours"], old[beside], new["ours"], new[beside]], _rounds(old) + _rounds(new))
            cost = change if of_ours != _more_is_better(old, new) else 1 / change
            return Verdict(WORSE if cost > 1 + margin else BETTER if cost < 1 / (1 + margin) else SAME, change, margin)
    if old["met"] is None or new["met"] is None:
        return Verdict(UNKNOWN)
    return Verdict(_by_truth(old["met"], new["met"]))


def _by_truth(old: bool, new: bool) -> str:
    return SAME if old == new else BETTER if new else WORSE


def _more_is_better(old: Row, new: Row) -> bool:
    return bool(new.get("more_is_better", old.get("more_is_better", False)))


def _never_came(row: Row) -> bool:
    return _middle(row["ours"]) is None


def _middle(figure: Any) -> float | None:
    return figure["p50"] if isinstance(figure, dict) else figure


def _margin(figures: Sequence[Any], rounds: Sequence[float]) -> float:
    """The scatter of the quotient of these figures; they are independent, so their squares add up."""
    known = [_scatter(figure) for figure in figures]
    if any(one is None for one in known):
        return max(UNKNOWN_MARGIN, *rounds) if rounds else UNKNOWN_MARGIN
    return max(LEAST_MARGIN, math.hypot(*(one for one in known if one is not None)))


def _scatter(figure: Any) -> float | None:
    """How far the median may be off, relative to it."""
    if not isinstance(figure, dict) or figure.get("low") is None or figure.get("high") is None or not figure["p50"]:
        return None
    return max(figure["high"] - figure["p50"], figure["p50"] - figure["low"]) / figure["p50"]


def _rounds(row: Row) -> list[float]:
    """The scatter of figures that are the best of a few rounds."""
    lists = [row["facts"].get(f"{who}_per_s") for who in ("ours", "floor")]
    return [(max(one) - min(one)) / max(one) for one in lists if isinstance(one, list) and len(one) > 1]


# ---- two files ----


def read(path: Path) -> tuple[dict[str, Any], Rows]:
    """What the run was, and its rows by section and name."""
    again = "measure again with `scripts/bench --json FILE`"
    try:
        report = json.loads(path.read_text())
    except OSError as error:
        raise BadFile(
            f"{path} cannot be read ({error.strerror}): give two files of `scripts/bench --json FILE`"
        ) from None
    except ValueError:
        raise BadFile(f"{path} is no JSON, perhaps of a run that was killed: {again}") from None
    try:
        rows = {(section["name"], row["name"]): row for section in report["sections"] for row in section["rows"]}
        for row in rows.values():
            _ = [row[key] for key in ("ours", "floor", "rival", "ours_by_floor", "rival_by_ours", "met", "facts")]
            _middle(row["ours"])
        _ = report["about"]["sizes"]
    except (KeyError, TypeError):
        raise BadFile(f"{path} has no figures of `scripts/bench`, or older ones: {again}") from None
    return report["about"], rows


def compare(old_file: Path, new_file: Path) -> tuple[str, bool]:
    """The text, and whether something is worse."""
    (old_about, old), (new_about, new) = read(old_file), read(new_file)
    if old_about["sizes"] != new_about["sizes"]:
        raise BadFile("One file is of a run with --quick and the other is not: measure both alike")
    both = [key for key in old if key in new]
    if not both:
        raise BadFile("No row is in both files: measure the same NAMEs in both runs")
    if not any("more_is_better" in rows[both[0]] for rows in (old, new)):
        raise BadFile("Neither file says whether more is better: measure the new one again with this `scripts/bench`")
    verdicts = {key: judge(old[key], new[key]) for key in both}
    lines = _aligned([HEADINGS, *(_cells(key, old[key], new[key], verdicts[key]) for key in both)])
    lines += _others(f"only in {old_file}", [key for key in old if key not in new])
    lines += _others(f"only in {new_file}", [key for key in new if key not in old])
    lines += ["", _summary(verdicts), *_warnings(old_about, new_about, verdicts)]
    return "\n".join(lines), any(one.word == WORSE for one in verdicts.values())


def _cells(key: tuple[str, str], old: Row, new: Row, verdict: Verdict) -> tuple[str, ...]:
    ours = [_shown(_middle(row["ours"]), never="never") for row in (old, new)]
    ratios = [_shown(row[ratio]) for ratio in ("ours_by_floor", "rival_by_ours") for row in (old, new)]
    margin = "" if verdict.margin is None else f"± {verdict.margin:.0%}"
    return (": ".join(key), *ours, *ratios, _shown(verdict.change), margin, verdict.word)


def _shown(value: float | None, never: str = "") -> str:
    return never if value is None else number(value)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _others(title: str, keys: Sequence[tuple[str, str]]) -> list[str]:
    return ["", f"{title}:", *(f"    {': '.join(key)}" for key in keys)] if keys else []


def _summary(verdicts: dict[tuple[str, str], Verdict]) -> str:
    words = [verdict.word for verdict in verdicts.values()]
    counts = ", ".join(f"{words.count(word)} {word}" for word in (BETTER, SAME, WORSE))
    return f"{counts}, {words.count(UNKNOWN)} without floor, rival and goal."


def _warnings(old: dict[str, Any], new: dict[str, Any], verdicts: dict[tuple[str, str], Verdict]) -> list[str]:
    lines = [
        f"{name}: {old.get(name)}, then {new[name]}" for name in new if name != "at" and old.get(name) != new[name]
    ]
    if new["sizes"] != "full":
        lines.append("Both runs were quick, so their figures mean nothing.")
    noisy = sum(verdict.margin is not None and verdict.margin > WANTED_MARGIN for verdict in verdicts.values())
    if noisy:
        lines.append(
            f"Rows that scatter so much that a change of {WANTED_MARGIN:.0%} is not seen: {noisy}. Measure again with"
            " less beside it."
        )
    return lines


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench compare", description=__doc__)
    parser.add_argument("old", type=Path, metavar="OLD.json")
    parser.add_argument("new", type=Path, metavar="NEW.json")
    files = parser.parse_args(arguments)
    try:
        text, is_worse = compare(files.old, files.new)
    except BadFile as error:
        print(f"scripts/bench compare: {error}.", file=sys.stderr)
        return 2
    print(text)
    return 1 if is_worse else 0
