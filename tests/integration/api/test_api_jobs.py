"""Jobs over HTTP: asked for, shown, cancelled, and their files downloaded."""

from typing import Any

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.jobs.engine.engine import Artifact
from tests.support.jobs import SCRIPTS, ask_for, row_of, runner_on
from tests.support.world import World

PATH = "/api/v1/jobs"


@pytest.fixture
def environ() -> dict[str, Any]:
    return {"jobs_dir": str(SCRIPTS)}


@pytest.fixture(autouse=True)
def no_other_jobs(world: World, db: Database) -> None:
    with db.transaction() as conn:
        conn.execute(text("DELETE FROM jobs"))


@pytest.fixture
def ask(call: Any) -> Any:
    def ask(method: str, path: str, json: Any = None, **headers: str) -> tuple[int, Any]:
        response = call("admin", method, path, json, **headers)
        return response.status_code, response.get_json(force=True)

    return ask


def test_job_is_asked_for_and_shown(ask: Any, world: World, db: Database) -> None:
    body = {"name": "greet", "params": {"name": "Çağla", "times": 2}, "maxRetries": 1, "timeoutS": 30}
    status, job = ask("POST", PATH, body)
    assert (status, job["status"], job["origin"]) == (202, "QUEUED", "HTTP")
    assert (job["requestedBy"], job["maxRetries"], job["timeoutS"]) == (world.ids["admin"], 1, 30.0)
    one = runner_on(db)
    one.runner.claim_once()
    one.held.progressed(one.task_id, 1, 2, "Merhaba")
    one.engine.end(one.task_id, {"a": [1, None]}, output="Merhaba", artifacts=(Artifact("a.txt", b"Merhaba"),))
    one.wait_until_recorded()
    one.runner.drain(0)
    status, job = ask("GET", f"{PATH}/{job['id']}")
    assert (status, job["status"], job["result"], job["output"]) == (200, "SUCCEEDED", {"a": [1, None]}, "Merhaba")
    assert job["progress"] == {"done": 1, "total": 2, "note": "Merhaba"}
    assert job["artifacts"] == [{"name": "a.txt", "size": 7}]
    assert job["params"]["name"] == "Çağla"


def test_refusal_names_every_wrong_parameter(ask: Any) -> None:
    body = {"name": "greet", "params": {"times": "2", "day": "tomorrow", "name": "", "colour of\n": "red"}}
    status, problem = ask("POST", PATH, body)
    assert (status, problem["code"]) == (400, "invalid_input")
    assert {error["field"]: error["code"] for error in problem["errors"]} == {
        "params.times": "wrong_type",
        "params.day": "invalid",
        "params.name": "too_short",
        "(unknown)": "unknown_field",
    }


@pytest.mark.parametrize("name", ["removed", "__init__"])
def test_unknown_script_is_refused(ask: Any, name: str) -> None:
    status, problem = ask("POST", PATH, {"name": name})
    assert status == 400
    assert [error["field"] for error in problem["errors"]] == ["name"]


def test_path_is_no_name_of_a_script(ask: Any) -> None:
    for name in ("../act", "/etc/passwd", "act.py", "ACT"):
        assert ask("POST", PATH, {"name": name})[0] == 400


def test_repeated_key_returns_the_same_job(ask: Any, call: Any) -> None:
    body = {"name": "greet", "params": {"name": "Ayşe", "times": 2}}
    key = {"Idempotency-Key": "k"}
    first, again = ask("POST", PATH, body, **key), ask("POST", PATH, body, **key)
    assert (first[0], again[0]) == (202, 200)
    assert first[1]["id"] == again[1]["id"]
    status, problem = ask("POST", PATH, body | {"params": {"times": 3}}, **key)
    assert (status, problem["code"]) == (409, "idempotency_key_reused")
    assert len(ask("GET", PATH)[1]["items"]) == 1


def test_job_is_cancelled(ask: Any, db: Database) -> None:
    job_id = ask_for(db)
    for _ in range(2):
        status, job = ask("PUT", f"{PATH}/{job_id}/cancel")
        assert (status, job["status"]) == (200, "CANCELLED")
    ended = ask_for(db)
    one = runner_on(db, at_once=True)
    one.runner.claim_once()
    one.wait_until_recorded()
    one.runner.drain(0)
    status, problem = ask("PUT", f"{PATH}/{ended}/cancel")
    assert (status, problem["code"], problem["status"]) == (409, "job_ended", 409)
    assert row_of(db, ended).status == "SUCCEEDED"


def test_list_is_filtered(ask: Any, db: Database) -> None:
    for name in ("greet", "act", "greet"):
        ask_for(db, name=name)
    assert [job["name"] for job in ask("GET", f"{PATH}?name=greet&limit=1")[1]["items"]] == ["greet"]
    assert len(ask("GET", f"{PATH}?name=greet&status=QUEUED")[1]["items"]) == 2
    assert ask("GET", f"{PATH}?status=RUNNING")[1]["items"] == []


def test_artifact_is_downloaded_as_a_file(call: Any, db: Database) -> None:
    job_id = ask_for(db)
    one = runner_on(db)
    one.runner.claim_once()
    page = b"<script>alert(1)</script>\0\xff"
    one.engine.end(one.task_id, None, artifacts=(Artifact("report.html", page),))
    one.wait_until_recorded()
    one.runner.drain(0)
    response = call("admin", "GET", f"{PATH}/{job_id}/artifacts/report.html")
    assert (response.status_code, response.data) == (200, page)
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"] == 'attachment; filename="report.html"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert call("admin", "GET", f"{PATH}/{job_id}/artifacts/other").status_code == 404
    assert call("admin", "GET", f"{PATH}/{job_id}/artifacts/..%2Freport.html").status_code in (400, 404)
    assert call("coordinator", "GET", f"{PATH}/{job_id}/artifacts/report.html").status_code == 403


def test_catalogue_describes_the_parameters(ask: Any) -> None:
    status, catalogue = ask("GET", f"{PATH}/catalogue")
    assert status == 200
    by_name = {script["name"]: script for script in catalogue["items"]}
    greet = by_name["greet"]
    assert (greet["summary"], greet["taskType"], greet["error"]) == ("Greets a person.", "io_bound", None)
    assert greet["parameters"]["properties"]["times"]["maximum"] == 5


def test_metrics_show_the_jobs_that_wait(call: Any, db: Database) -> None:
    ask_for(db)
    metrics = call("admin", "GET", "/metrics").get_data(as_text=True)
    assert 'yaninda_jobs_live{status="QUEUED"} 1.0' in metrics
    assert "yaninda_jobs_oldest_queued_seconds" in metrics
