"""`scripts/bench compare` tells from two files what became better or worse."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.compare import main
from benchmarks.figures import Spread, spread, spread_of_rounds
from benchmarks.report import Row, Section, write_json

from tests.support.pages import ROOT

ABOUT = {"at": "2026-11-20", "cores": 2, "sizes": "full"}


def close_to(middle: float, samples: int = 401) -> Spread:
    """Samples whose median is known to 0.1 %."""
    return spread([middle * (1 + (n - samples // 2) / samples / 50) for n in range(samples)])


def written(folder: Path, name: str, rows: Sequence[Row], sizes: str = "full") -> str:
    file = folder / name
    write_json(file, [Section("x", "x: what it is", rows)], {**ABOUT, "sizes": sizes})
    return str(file)


def compared(
    folder: Path, capsys: pytest.CaptureFixture[str], old: Sequence[Row], new: Sequence[Row]
) -> tuple[int, str]:
    code = main([written(folder, "old.json", old), written(folder, "new.json", new)])
    return code, capsys.readouterr().out


def verdict(folder: Path, capsys: pytest.CaptureFixture[str], old: Row, new: Row) -> str:
    _, text = compared(folder, capsys, [old], [new])
    return next(line.split()[-1] for line in text.splitlines() if line.startswith("x: press"))


def test_change_that_costs_ten_percent_is_seen_on_a_machine_that_became_faster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = Row("press", close_to(20.0), close_to(10.0)), Row("press", close_to(11.0), close_to(5.0))
    code, text = compared(tmp_path, capsys, [old], [new])
    [line] = [line for line in text.splitlines() if line.startswith("x: press")]
    assert line.split()[-6:] == ["2.00", "2.20", "1.10", "±", "3%", "worse"]
    assert "0 better, 0 same, 1 worse" in text
    assert code == 1


@pytest.mark.parametrize(
    ("ours", "floor", "expected"),
    [(10.1, 5.0, "same"), (9.0, 5.0, "better"), (20.0, 10.0, "same"), (20.0, 9.0, "worse")],
)
def test_verdict_follows_from_the_ratio_to_the_floor(
    ours: float, floor: float, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = Row("press", close_to(20.0), close_to(10.0))
    assert verdict(tmp_path, capsys, old, Row("press", close_to(ours), close_to(floor))) == expected


def test_more_of_a_rate_is_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = Row("press", 100.0, 200.0, more_is_better=True)
    assert verdict(tmp_path, capsys, old, Row("press", 150.0, 200.0, more_is_better=True)) == "better"
    assert verdict(tmp_path, capsys, old, Row("press", 89.0, 200.0, more_is_better=True)) == "worse"


def test_ratio_to_the_rival_decides_where_there_is_no_floor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = Row("press", 10.0, rival=40.0)
    assert verdict(tmp_path, capsys, old, Row("press", 12.0, rival=40.0)) == "worse"
    assert verdict(tmp_path, capsys, old, Row("press", 12.0, rival=60.0)) == "better"


def test_rows_that_scatter_need_a_larger_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scattered = spread_of_rounds([[18.0] * 50, [22.0] * 50, [20.0] * 50])
    old, new = Row("press", scattered, close_to(10.0)), Row("press", close_to(22.0), close_to(10.0))
    code, text = compared(tmp_path, capsys, [old], [new])
    [line] = [line for line in text.splitlines() if line.startswith("x: press")]
    assert line.split()[-3:] == ["±", "10%", "same"]
    assert "a change of 10% is not seen: 1." in text
    assert code == 0


def test_figures_that_were_measured_once_are_compared_with_a_fixed_margin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdict(tmp_path, capsys, Row("press", 10.0, 5.0), Row("press", 10.7, 5.0)) == "same"
    assert verdict(tmp_path, capsys, Row("press", 10.0, 5.0), Row("press", 11.0, 5.0)) == "worse"


def test_best_of_rounds_that_differ_has_their_scatter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = Row("press", 100.0, 200.0, facts={"ours_per_s": [70.0, 100.0]}, more_is_better=True)
    assert verdict(tmp_path, capsys, old, Row("press", 80.0, 200.0, more_is_better=True)) == "same"


def test_result_that_never_comes_any_more_is_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = Row("press", close_to(1.0), 1.0), Row("press", spread([float("inf")] * 3), 1.0)
    assert verdict(tmp_path, capsys, old, new) == "worse"


def test_goal_decides_where_nothing_is_beside_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        verdict(tmp_path, capsys, Row("press", 0, goal="0", met=True), Row("press", 3, goal="0", met=False)) == "worse"
    )
    assert verdict(tmp_path, capsys, Row("press", 5.0), Row("press", 500.0)) == "–"


def test_rows_in_one_file_only_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = Row("press", 1.0, 1.0)
    code, text = compared(tmp_path, capsys, [both, Row("gone", 1.0)], [both, Row("new", 1.0)])
    lines = text.splitlines()
    assert lines[lines.index(f"only in {tmp_path / 'old.json'}:") + 1] == "    x: gone"
    assert lines[lines.index(f"only in {tmp_path / 'new.json'}:") + 1] == "    x: new"
    assert code == 0


@pytest.mark.parametrize("content", [None, "", '{"sections": 5}', '{"about": {}, "sections": []}', "[1]"])
def test_bad_file_is_refused_with_what_to_do(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.json"
    if content is not None:
        bad.write_text(content)
    assert main([written(tmp_path, "old.json", [Row("press", 1.0)]), str(bad)]) == 2
    assert "scripts/bench --json FILE" in capsys.readouterr().err


def test_files_of_other_rows_and_of_other_sizes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = written(tmp_path, "old.json", [Row("press", 1.0)])
    assert main([old, written(tmp_path, "other.json", [Row("accept", 1.0)])]) == 2
    assert "same NAMEs" in capsys.readouterr().err
    assert main([old, written(tmp_path, "quick.json", [Row("press", 1.0)], "quick")]) == 2
    assert "--quick" in capsys.readouterr().err


def test_command_compares_without_stores(tmp_path: Path) -> None:
    file = written(tmp_path, "one.json", [Row("press", close_to(2.0), close_to(1.0))])
    command = [str(ROOT / "scripts" / "bench"), "compare", file, file]
    done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 same" in done.stdout
    assert json.loads(Path(file).read_text())["sections"][0]["rows"][0]["more_is_better"] is False
