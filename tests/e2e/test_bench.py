"""The benchmarks run from end to end. Their figures depend on the machine, so no test compares them."""

import json
import os
import subprocess
from pathlib import Path

from benchmarks.figures import in_turns, number, spread
from benchmarks.report import Row, Section, table

from tests.support.pages import ROOT, blocks

QUICK = ("http", "ceiling", "delivery-drain", "delivery-api", "delivery-batches")
"""Run beside the command of the page."""
MEASURED = ROOT / "docs" / "measured.md"
CALLER = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "USER") if name in os.environ}


def bench(temporary: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(ROOT / "scripts" / "bench"), *arguments],
        env={**CALLER, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_quick_run_prints_a_table_writes_json_and_leaves_nothing(tmp_path: Path) -> None:
    """One run, because starting the stores takes longer than most of these. The other measurements wait for real
    deadlines and retries, or send for a while."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    file = tmp_path / "figures.json"
    [command] = [line for block in blocks(MEASURED) if block.mark == "run by" for line in block.lines]
    done = bench(temporary, *QUICK, *command.split()[1:], "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "in the circle" in done.stdout
    report = json.loads(file.read_text())
    sections = {section["name"]: section["rows"] for section in report["sections"]}
    assert list(sections) == [*QUICK, "candidates"]
    for row in sections["candidates"]:
        assert all(row[who]["samples"] > 0 for who in ("ours", "floor", "rival"))
    drained = sections["delivery-drain"]
    assert all(drained[0][who] > 0 for who in ("ours", "floor", "rival"))
    assert drained[-1]["facts"] == {"twice": 0, "never": 0}
    assert all(sections["delivery-api"][0][who]["samples"] > 0 for who in ("ours", "floor"))
    assert sections["delivery-batches"][0]["ours"] > 0
    for deed in range(2):
        recorded, least, *rates = sections["http"][4 * deed : 4 * deed + 4]
        assert recorded["ours"] == least["ours"]
        assert all(row[who]["samples"] > 0 for row in (recorded, least) for who in ("ours", "floor"))
        assert all(row[who] > 0 for row in rates for who in ("ours", "floor"))
        trips = least["facts"]["round_trips"]
        assert 0 < trips["least"] <= trips["recorded"]
    grown, *costs = sections["ceiling"]
    assert all(grown[who] > 0 for who in ("ours", "floor", "rival"))
    assert {"api", "Redis", "client"} <= {row["name"].rpartition(": ")[2] for row in costs if row["ours"] > 0}
    [trips] = [row for row in costs if row["name"] == "round trips to PostgreSQL for a press"]
    assert 1 <= trips["floor"] <= trips["ours"]
    assert list(temporary.iterdir()) == []
    same = bench(temporary, "compare", str(file), str(file))
    assert same.returncode == 0, same.stderr
    assert " 0 worse" in same.stdout


def test_unknown_measurement_is_refused_before_anything_starts(tmp_path: Path) -> None:
    done = bench(tmp_path, "nothing")
    assert done.returncode == 2
    assert "candidates" in done.stderr
    assert "delivery" in done.stderr


def test_in_turns_every_implementation_does_an_item_before_the_next_item() -> None:
    acts: list[tuple[str, int]] = []

    def implementation(name: str) -> object:
        return lambda item: acts.append((name, item))

    samples = in_turns({name: implementation(name) for name in ("ours", "floor")}, [1, 2], 1)
    assert acts[-4:] == [("ours", 1), ("floor", 1), ("ours", 2), ("floor", 2)]
    assert [len(taken) for taken in samples.values()] == [2, 2]


def test_percentiles_are_values_of_the_samples() -> None:
    found = spread([float(one) for one in range(1, 201)])
    assert (found.p50, found.p99, found.most, found.samples) == (100.0, 198.0, 200.0, 200)


def test_infinite_time_is_printed_as_never() -> None:
    assert number(float("inf")) == "never"


def test_table_shows_whether_a_goal_was_met() -> None:
    rows = [Row("kept", 1.0, 1.0, 20.0, "rival ≥10x", True), Row("missed", 4.0, 1.0, 20.0, "rival ≥10x", False)]
    printed = table([Section("x", "x: what it is", rows)], {"cores": 2})
    kept, missed = (next(line for line in printed.splitlines() if name in line) for name in ("kept", "missed"))
    assert kept.split()[-1] == "yes"
    assert missed.split()[-1] == "NO"
    assert "20.0x" in kept
    assert "5.00x" in missed
