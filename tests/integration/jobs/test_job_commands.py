"""The commands about jobs that need no role."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from app.cli.job_progress import bar, line
from app.cli.manage_jobs import main
from app.db.database import Database
from app.jobs.contract import JobProgress
from app.jobs.engine.engine import Artifact
from app.settings.settings import Settings
from tests.support.jobs import SCRIPTS, ask_for, runner_on


@pytest.fixture
def environ() -> dict[str, Any]:
    return {"jobs_dir": str(SCRIPTS)}


def words(*params: str) -> list[str]:
    return ["run", "greet", *(word for param in params for word in ("--param", param))]


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (words("odd", "=x"), ["--param odd: must be NAME=VALUE", "--param =x: must be NAME=VALUE"]),
        (words("name=a", "name=b"), ["--param name: is given more than once"]),
        (
            words("times=nine", "day=x", "colour=red"),
            [
                "--param colour: is not known here",
                "--param day: must be a date",
                "--param times: must be a whole number",
            ],
        ),
        (["run", "greet", "--times=nine", "--day=x"], ["--param day: must be", "--param times: must be"]),
        (["run", "act", "--colour"], ["--param colour: is not known here"]),
        ([*words(), "--max-retries", "-1", "--timeout-s", "0"], ["--max-retries must", "--timeout-s must"]),
        (["run", "../act"], ["There is no script '../act'."]),
    ],
)
def test_each_wrong_word_has_its_line(
    settings: Settings, db: Database, capsys: pytest.CaptureFixture[str], argv: list[str], lines: list[str]
) -> None:
    assert main(settings, argv) == 2
    told = sorted(capsys.readouterr().err.splitlines())
    assert len(told) == len(lines)
    for found, begin in zip(told, sorted(lines), strict=True):
        assert found.startswith(begin)
    with db.reading() as conn:
        assert conn.execute(text("SELECT count(*) FROM jobs")).scalar_one() == 0


def test_list_tells_names_parameters_and_defaults(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(settings, ["list"]) == 0
    out = capsys.readouterr().out
    assert "greet  (io_bound)\n    Greets a person.\n" in out
    assert '    --param name=…  default "Ayşe"  Whom to greet.\n' in out


def test_job_is_shown_and_its_files_are_saved(
    settings: Settings, db: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job_id = ask_for(db)
    one = runner_on(db)
    one.runner.claim_once()
    one.engine.end(one.task_id, {"a": 1}, artifacts=(Artifact("a.csv", b"\xff"),))
    one.wait_until_recorded()
    one.runner.drain(0)
    assert main(settings, ["show", str(job_id), "--artifacts", str(tmp_path / "new")]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["status"], shown["result"], shown["artifacts"]) == (
        "SUCCEEDED",
        {"a": 1},
        [{"name": "a.csv", "size": 1}],
    )
    assert (tmp_path / "new" / "a.csv").read_bytes() == b"\xff"
    assert main(settings, ["show", str(uuid4())]) == 1
    assert "no job with this id" in capsys.readouterr().err


def test_progress_is_one_line_whatever_the_note_holds() -> None:
    assert line(JobProgress(3, None, "a\nb\x1b[2J")) == "3 a b [2J"
    assert bar(JobProgress(1, 2, "şu")) == "[###############...............]  50% 1/2 şu"
    assert bar(JobProgress(9, 2, "")).startswith(f"[{'#' * 30}] 100%")
    assert bar(JobProgress(0, 0, "")) == "0/0"


def test_reader_that_ends_early_is_no_error(settings: Settings) -> None:
    """As in `jobs list | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    environ = {"AUTH_SECRET": "x" * 32, "DATABASE_URL": settings.database_url, "REDIS_URL": settings.redis_url}
    command = [sys.executable, "-m", "app", "jobs", "list"]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environ, timeout=60, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_folder_that_was_removed_is_named(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = settings.model_copy(update={"jobs_dir": str(tmp_path / "gone")})
    for argv in (["list"], ["run", "greet"]):
        assert main(gone, argv) == 1
        assert f"JOBS_DIR, {tmp_path / 'gone'}, is gone or cannot be read. Put it back" in capsys.readouterr().err
