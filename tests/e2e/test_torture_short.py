"""A short torture from end to end, with a fixed seed: the command of docs/torture.md at smaller sizes."""

import json
import os
import subprocess
from pathlib import Path

from tests.support.depth import DEEP, size

ROOT = Path(__file__).resolve().parents[2]
CALLER = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "USER") if name in os.environ}

# Starting processes is most of the work, so that the suite has as few as can still get in each other's way.
FEW = ["--apis=1", "--matchers=2", "--deliveries=1"]
SIZE = ["--minutes=2"] if DEEP else ["--quick", "--minutes=0.25", "--faults=3", *FEW]
# Enough that an order other than that of the deadlines shows beside a batch that a slow matcher holds.
OVERDUE = size(suite=80, deep=300)


def torture(temporary: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(ROOT / "scripts" / "torture"), *arguments],
        env={**CALLER, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=size(suite=240, deep=900),
        check=False,
    )


def test_no_promise_is_broken_in_a_short_torture_and_nothing_is_left(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    temporary.chmod(0o711)
    file = tmp_path / "report.json"
    done = torture(temporary, *SIZE, f"--overdue={OVERDUE}", "--seed=7", f"--json={file}")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(file.read_text())
    assert report["violations"] == []
    assert report["notes"] == [], "every planned fault must be injected"
    assert sum(report["faults"].values()) >= 3, "more on a machine that is less busy"
    assert sum(report["tasks"].values()) > 40
    assert report["downtime"]["overdue"] == OVERDUE
    assert report["syncs"]["killed"] >= 1
    assert report["syncs"]["taken"] >= 1
    assert report["polls"]["bootstraps"] >= 2, "both copies were made anew"
    assert report["events"]["seen"] > 100
    assert report["events"]["streams"] > 20, "readers resumed"
    assert list(temporary.iterdir()) == []
