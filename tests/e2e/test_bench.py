"""The benchmarks run from end to end. What they find depends on the machine and is nothing for a test."""

import json
import os
import subprocess
from pathlib import Path

from benchmarks.figures import in_turns, number, spread
from benchmarks.report import Row, Section, table

ROOT = Path(__file__).resolve().parents[2]
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
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    file = tmp_path / "figures.json"
    done = bench(temporary, "candidates", "--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "in the circle" in done.stdout
    (section,) = json.loads(file.read_text())["sections"]
    assert section["name"] == "candidates"
    for row in section["rows"]:
        assert all(row[who]["samples"] > 0 for who in ("ours", "floor", "rival"))
    assert list(temporary.iterdir()) == []


def test_delivery_is_measured_from_the_post_to_the_providers(tmp_path: Path) -> None:
    """The parts that are quick; the others wait for real backoffs, or send for a while."""
    file = tmp_path / "figures.json"
    done = bench(tmp_path, "delivery-drain", "delivery-api", "delivery-batches", "--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    drained, posted, batches = json.loads(file.read_text())["sections"]
    assert all(drained["rows"][0][who] > 0 for who in ("ours", "floor", "rival"))
    assert drained["rows"][-1]["facts"] == {"twice": 0, "never": 0}
    assert all(posted["rows"][0][who]["samples"] > 0 for who in ("ours", "floor"))
    assert batches["rows"][0]["ours"] > 0


def test_unknown_measurement_is_refused_before_anything_starts(tmp_path: Path) -> None:
    done = bench(tmp_path, "nothing")
    assert done.returncode == 2
    assert "candidates" in done.stderr
    assert "delivery" in done.stderr


def test_nobody_does_the_next_item_before_all_have_done_this_one() -> None:
    acts: list[tuple[str, int]] = []

    def contestant(name: str) -> object:
        return lambda item: acts.append((name, item))

    samples = in_turns({name: contestant(name) for name in ("ours", "floor")}, [1, 2], 1)
    assert acts[-4:] == [("ours", 1), ("floor", 1), ("ours", 2), ("floor", 2)]
    assert [len(taken) for taken in samples.values()] == [2, 2]


def test_percentiles_are_samples_that_were_taken() -> None:
    found = spread([float(one) for one in range(1, 201)])
    assert (found.p50, found.p99, found.most, found.samples) == (100.0, 198.0, 200.0, 200)


def test_what_never_came_is_said_in_words() -> None:
    assert number(float("inf")) == "never"


def test_table_says_whether_a_goal_was_met() -> None:
    rows = [Row("kept", 1.0, 1.0, 20.0, "rival ≥10x", True), Row("missed", 4.0, 1.0, 20.0, "rival ≥10x", False)]
    printed = table([Section("x", "x: what it is", rows)], {"cores": 2})
    kept, missed = (next(line for line in printed.splitlines() if name in line) for name in ("kept", "missed"))
    assert kept.split()[-1] == "yes"
    assert missed.split()[-1] == "NO"
    assert "20.0x" in kept
    assert "5.00x" in missed
