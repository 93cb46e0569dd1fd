"""The role `jobs` and the commands about jobs, as processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.bootstrap.api import create_app
from app.cli import run_jobs
from app.cli.manage_jobs import main
from app.db.database import Database
from app.jobs.engine.options import EngineOptions
from app.settings.settings import Settings
from tests.support.cluster import Cluster
from tests.support.jobs import SCRIPTS, ask_for, row_of, status_of
from tests.support.processes import is_alive
from tests.support.serving import ROOT, eventually
from tests.support.world import authorization, settle_world

LEASE_S = 3
Process = "subprocess.Popen[str]"


@pytest.fixture
def environ() -> dict[str, Any]:
    return {"jobs_dir": str(SCRIPTS)}


@pytest.fixture
def environment(settings: Settings, tmp_path: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "AUTH_SECRET": settings.auth_secret or "",
        "JOBS_DIR": str(SCRIPTS),
        "JOBS_CPU_WORKERS": "1",
        "DRAIN_S": "1",
        "TMPDIR": str(tmp_path),
    }


def start(environment: dict[str, str], *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "app", "jobs", *words],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE if words else None,
        stderr=subprocess.PIPE if words else None,
        text=True,
    )


def command(environment: dict[str, str], *words: str) -> tuple[int, str, str]:
    process = start(environment, *words)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@contextmanager
def role(environment: dict[str, str], *, ends_with: int = 0) -> Iterator["subprocess.Popen[str]"]:
    process = start(environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == ends_with


def lines(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def last_job(db: Database) -> Any:
    with db.reading() as conn:
        return conn.execute(text("SELECT * FROM jobs ORDER BY id DESC LIMIT 1")).one()


def test_role_runs_jobs_for_commands_and_gives_back_what_does_not_end(
    db: Database,
    settings: Settings,
    environment: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    never = f"until={tmp_path / 'never'}"
    with role(environment):
        words = ["--param", "name=Çağla", "--param", "times=2", "--artifacts", str(tmp_path / "kept")]
        code, out, err = command(environment, "run", "greet", *words)
        assert (code, json.loads(out)["greeted"]) == (0, "Çağla"), err
        assert "2/2 Merhaba Çağla" in err
        assert (tmp_path / "kept" / "greeting.txt").read_text() == "Merhaba Çağla\n" * 2

        assert main(settings, ["run", "act", "--param", "fail=true"]) == 1
        told = capsys.readouterr()
        assert (told.out, "RuntimeError: as it was told" in told.err) == ("", True)

        process = start(environment, "run", "act", "--param", never)
        eventually(lambda: last_job(db).progress_done == 1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert (process.returncode, last_job(db).status) == (130, "CANCELLED"), err

        job_id = ask_for(db, params={"until": str(tmp_path / "never")})
        eventually(lambda: row_of(db, job_id).progress_done == 1)
    row = row_of(db, job_id)
    assert (row.status, row.claims) == ("QUEUED", 0)


def test_job_runs_in_the_process_of_the_command(db: Database, environment: dict[str, str]) -> None:
    environment |= {"JOBS_ENGINE": "dask://127.0.0.1:1", "JOBS_TLS_DIR": "/nowhere"}
    code, out, err = command(environment, "run", "greet", "--here", "--param", "day=2026-03-12")
    assert (code, json.loads(out)["day"]) == (0, "2026-03-12"), err
    row = last_job(db)
    assert (row.status, row.origin, row.claims) == ("SUCCEEDED", "CLI", 1)


def test_role_refuses_a_schedule_that_cannot_run(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    schedule = '[{"job": "greet", "cron": "0 0 * * *", "params": {"times": 9}}]'
    assert run_jobs.main(settings.model_copy(update={"jobs_schedule": schedule}), []) == 78
    assert "JOBS_SCHEDULE: greet: params.times" in capsys.readouterr().err


def test_job_runs_in_one_place_at_a_time_though_its_role_is_stopped_and_killed(
    db: Database, environment: dict[str, str], tmp_path: Path
) -> None:
    environment |= {"JOBS_LEASE_S": str(LEASE_S)}
    diary, until = tmp_path / "diary", tmp_path / "until"
    job_id = ask_for(db, params={"diary": str(diary), "until": str(until)})

    def wait_for_next_run() -> None:
        """Whenever a run begins, the worker of the one before it is dead."""
        before = len(lines(diary))
        eventually(lambda: len(lines(diary)) > before)
        assert [pid for _, pid, _ in lines(diary)[:-1] if is_alive(int(pid))] == []

    with role(environment) as first:
        wait_for_next_run()
        with role(environment, ends_with=-signal.SIGKILL) as second:
            first.send_signal(signal.SIGSTOP)
            wait_for_next_run()
            first.send_signal(signal.SIGCONT)
            # The first finds that the job is not its own, and waits for the next.
            eventually(lambda: row_of(db, job_id).claims >= 2)
            second.kill()
            second.wait()
        wait_for_next_run()
        until.touch()
        eventually(lambda: status_of(db, job_id) == "SUCCEEDED")
    row = row_of(db, job_id)
    assert row.claims >= 3
    assert row.result == {"task": f"{job_id}.{row.fence}"}
    assert [line[0] for line in lines(diary)].count("ends") == 1


def test_roles_share_the_run_of_a_job_on_a_cluster(
    services: Services, db: Database, environment: dict[str, str], tmp_path: Path
) -> None:
    """A role that stands still for longer than its lease, and one that is killed, while another is there."""
    http, admin = create_app(services).test_client(), authorization(settle_world(services), services, "admin")

    def ask_over_http(name: str) -> tuple[UUID, Path, Path]:
        diary, until = tmp_path / f"{name}-diary", tmp_path / f"{name}-until"
        body = {"name": "act", "params": {"diary": str(diary), "until": str(until)}}
        job_id = UUID(http.post("/api/v1/jobs", json=body, headers=admin).get_json()["id"])
        eventually(lambda: lines(diary))
        return job_id, diary, until

    with Cluster(tmp_path, EngineOptions(cpu_workers=1, cancel_grace_s=60)) as cluster:
        environment |= {
            "JOBS_ENGINE": f"dask://127.0.0.1:{cluster.port}",
            "JOBS_TLS_DIR": str(cluster.tls.key.parent),
            "JOBS_LEASE_S": str(LEASE_S),
        }
        with role(environment) as first:
            cancelled, cancelled_diary, _ = ask_over_http("cancelled")
            shared, diary, until = ask_over_http("shared")
            with role(environment, ends_with=-signal.SIGKILL) as second:
                first.send_signal(signal.SIGSTOP)
                eventually(lambda: min(row_of(db, job_id).claims for job_id in (cancelled, shared)) == 2)
                assert http.put(f"/api/v1/jobs/{cancelled}/cancel", headers=admin).status_code == 200
                first.send_signal(signal.SIGCONT)
                eventually(lambda: status_of(db, cancelled) == "CANCELLED")
                second.kill()
                second.wait()
            # No other run begins beside the one that its own role has let go of.
            eventually(lambda: row_of(db, shared).claims == 3)
            until.touch()
            eventually(lambda: status_of(db, shared) == "SUCCEEDED")
    assert row_of(db, shared).result["task"].startswith(f"{shared}.")
    assert [line[0] for line in lines(cancelled_diary)] == ["begins", "ends"]
    runs = [line[0] for line in lines(diary)]
    assert runs == ["begins", "ends"] * (len(runs) // 2)
