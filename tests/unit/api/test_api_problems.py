"""Errors in the format of RFC 9457, without personal data."""

import io
import json
import sys
import threading
import time
from typing import Any
from urllib.parse import unquote

import pytest
import sqlalchemy.exc
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.api import load
from app.api.errors import TITLES
from app.api.load import Arrival
from app.foundation.errors import AppError, Conflict, Forbidden, InvalidValue, NotFound, TooManyRequests, Unavailable
from app.foundation.logs import configure_logs
from app.ops.metrics import HttpMetrics
from tests.support.api import PEOPLE, TASK_ID, FakeMatching, app_on_fakes, bearer

ACCEPT = f"/tasks/{TASK_ID}/accept"


class OfferIsOver(Conflict):
    code = "offer_is_over"


RAISED = [
    (NotFound("x"), 404, "not_found"),
    (Forbidden("x"), 403, "forbidden"),
    (Conflict("x"), 409, "conflict"),
    (OfferIsOver("x"), 409, "offer_is_over"),
    (InvalidValue("studentId", "x"), 400, "invalid_value"),
    (TooManyRequests("x", 7), 429, "too_many_requests"),
    (Unavailable("x"), 503, "unavailable"),
    (AppError("x"), 500, "error"),
    (RuntimeError("x"), 500, "internal_error"),
]


@pytest.mark.parametrize(("error", "status", "code"), RAISED, ids=[type(row[0]).__name__ for row in RAISED])
def test_each_error_has_its_status(client: Any, matching: FakeMatching, error: Exception, status: int, code: str):
    matching.error = error
    response = client.put(ACCEPT, headers=bearer("student"))
    assert response.content_type == "application/problem+json"
    problem = json.loads(response.data)
    assert response.status_code == problem["status"] == status
    assert problem["code"] == code
    assert problem["type"] == "about:blank"
    assert problem["title"] == TITLES[status]
    assert isinstance(problem["detail"], str)


def test_error_about_a_value_names_the_field(client: Any, matching: FakeMatching):
    matching.error = InvalidValue("studentId", "is not the id of a student")
    problem = json.loads(client.put(ACCEPT, headers=bearer("student")).data)
    assert problem["errors"] == [{"field": "studentId", "message": "is not the id of a student", "code": "invalid"}]


def test_retry_after_is_sent(client: Any, matching: FakeMatching):
    matching.error = TooManyRequests("Slowly.", 7)
    assert client.put(ACCEPT, headers=bearer("student")).headers["Retry-After"] == "7"
    matching.error = Unavailable("Away.")
    assert client.put(ACCEPT, headers=bearer("student")).headers["Retry-After"] == "2"


def test_extra_members_of_an_error_are_in_camel_case(client: Any, matching: FakeMatching):
    matching.error = Conflict("Too late.", task_status="COMPLETED", status="no member of ours gives way")
    problem = json.loads(client.put(ACCEPT, headers=bearer("student")).data)
    assert problem["taskStatus"] == "COMPLETED"
    assert problem["status"] == 409


def test_unknown_paths_and_wrong_methods_are_problems_too(client: Any):
    nowhere = client.get("/nowhere")
    assert (nowhere.status_code, json.loads(nowhere.data)["code"]) == (404, "route_unknown")
    wrong = client.delete("/tasks")
    assert (wrong.status_code, json.loads(wrong.data)["code"]) == (405, "method_not_allowed")
    assert set(wrong.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST"}
    assert client.options("/tasks").status_code == 405
    assert client.open("/tasks", method="TRACE").status_code == 405
    for path in ("//tasks", "/tasks/", "/tasks//accept", "/%2e%2e/", "/static/x"):
        # The test client would take "//tasks" for the name of a host.
        as_sent = {"PATH_INFO": unquote(path), "REQUEST_URI": path}
        assert client.get("/nowhere", environ_overrides=as_sent).status_code == 404, path


def test_request_id_is_kept_if_valid_and_replaced_otherwise(client: Any):
    assert client.get("/healthz", headers={"X-Request-Id": "abc-1.2_3"}).headers["X-Request-Id"] == "abc-1.2_3"
    for strange in ("", "a b", "a" * 65, "ü", "<script>"):
        given = client.get("/healthz", headers={"X-Request-Id": strange}).headers["X-Request-Id"]
        assert given != strange
        assert len(given) == 16


@pytest.mark.parametrize("path", ["/healthz", "/docs", "/nowhere", "/tasks", "/openapi.json"])
def test_every_response_has_security_headers(client: Any, path: str):
    headers = client.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "Access-Control-Allow-Origin" not in headers
    assert headers.getlist("Content-Security-Policy") == [headers["Content-Security-Policy"]]


SECRETS = ("Ayşe", "+905550100002", "elder-token", "40.98", "Ekmek", "hunter2")


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure_logs("DEBUG", as_json=True)
    return written


def test_internal_error_shows_only_the_place(client: Any, matching: FakeMatching, logged: io.StringIO):
    driver = RuntimeError("Key (phone)=(+905550100002) of Ayşe already exists, password=hunter2")
    matching.error = sqlalchemy.exc.IntegrityError("INSERT …", {"name": "Ayşe", "phone": "+905550100002"}, driver)
    response = client.put(ACCEPT, headers=bearer("student") | {"X-Request-Id": "find-me"})
    assert response.status_code == 500
    event = next(json.loads(line) for line in logged.getvalue().splitlines() if "request_failed" in line)
    assert event["request_id"] == "find-me"
    assert event["kinds"][0] == "sqlalchemy.exc.IntegrityError"
    assert any("accept" in frame for frame in event["frames"])
    for secret in SECRETS:
        assert secret not in response.get_data(as_text=True)
        assert secret not in logged.getvalue()


def test_request_line_names_the_caller(client: Any, logged: io.StringIO):
    client.get("/me", headers=bearer("student"))
    client.get("/me")
    known, unknown = (json.loads(line) for line in logged.getvalue().splitlines() if '"request"' in line)
    assert (known["caller_id"], known["route"]) == (PEOPLE["student"].id, "/me")
    assert "caller_id" not in unknown


def test_logs_and_errors_do_not_quote_the_request(client: Any, logged: io.StringIO):
    bodies = [
        {"note": "Ekmek\u0000 Ayşe +905550100002", "location": {"lat": "40.98", "lon": 400.9812}},
        {"Ayşe +905550100002": "Ekmek"},
        ["Ayşe", "+905550100002"],
    ]
    for body in bodies:
        response = client.post("/tasks?name=Ayşe", json=body, headers={"Authorization": "Bearer elder-token"})
        shown = response.get_data(as_text=True)
        response = client.post("/tasks", json=body, headers=bearer("elder"))
        shown += response.get_data(as_text=True) + logged.getvalue()
        assert response.status_code == 400
        for secret in SECRETS:
            assert secret not in shown, secret


def test_request_is_logged_with_its_route_and_not_its_path(client: Any, logged: io.StringIO):
    client.get(f"/tasks/{TASK_ID}", headers=bearer("elder"))
    client.get("/Ayşe/hunter2")
    client.get("/healthz")
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert [(line["event"], line["method"], line["route"], line["status"]) for line in lines] == [
        ("request", "GET", "/tasks/<taskId>", 200),
        ("request", "GET", "unknown", 404),
    ]
    assert str(TASK_ID) not in logged.getvalue()


def test_metrics_require_a_token_if_one_is_set(matching: FakeMatching):
    guarded = app_on_fakes(matching, settings={"metrics_token": "m" * 32}).test_client()
    assert json.loads(guarded.get("/metrics").data)["code"] == "token_missing"
    assert guarded.get("/metrics", headers=bearer("elder")).status_code == 401
    assert guarded.get("/metrics", headers=bearer("m" * 32)).status_code == 200
    assert guarded.get("/metrics", headers=bearer("ü")).status_code == 401


def test_metrics_count_by_route_and_status(matching: FakeMatching):
    client = app_on_fakes(matching).test_client()
    client.get(f"/tasks/{TASK_ID}", headers=bearer("elder"))
    client.get("/wp-login.php")
    shown = client.get("/metrics").get_data(as_text=True)
    assert 'http_requests_total{method="GET",route="/tasks/<taskId>",status="200"} 1.0' in shown
    assert 'route="unknown",status="404"} 1.0' in shown
    assert "http_request_duration_seconds_bucket" in shown
    assert str(TASK_ID) not in shown
    assert "wp-login" not in shown


class Counted(Collector):
    """Counts how often the figures are made, and takes its time if it is told to."""

    def __init__(self) -> None:
        self.made = 0
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()

    def collect(self) -> list[Metric]:
        self.made += 1
        self.begun.set()
        assert self.may_end.wait(10)
        return [GaugeMetricFamily("made", "How often.", self.made)]


def test_figures_are_made_at_most_once_a_second():
    now, counted = [100.0], Counted()
    metrics = HttpMetrics(None, [counted], clock=lambda: now[0])
    assert [metrics.text() for _ in range(5)] == [metrics.text()] * 5
    now[0] += 0.99
    assert b"made 1.0" in metrics.text()
    now[0] += 0.01
    assert b"made 2.0" in metrics.text()


def test_who_asks_while_figures_are_made_gets_those_before():
    now, counted = [100.0], Counted()
    metrics = HttpMetrics(None, [counted], clock=lambda: now[0])
    metrics.text()
    now[0] += 1
    counted.begun.clear()
    counted.may_end.clear()
    making = threading.Thread(target=metrics.text)
    making.start()
    assert counted.begun.wait(10)
    assert b"made 1.0" in metrics.text()
    counted.may_end.set()
    making.join()
    assert b"made 2.0" in metrics.text()
    assert counted.made == 2


def test_metrics_are_shed_and_health_is_not(matching: FakeMatching):
    client = app_on_fakes(matching).test_client()
    load.arrival.set(Arrival(began=time.monotonic() - 5, waited_s=5.0, draining=False))
    try:
        found = {path: client.get(path).status_code for path in ("/metrics", "/docs", "/healthz")}
    finally:
        load.arrival.set(None)
    assert found == {"/metrics": 503, "/docs": 503, "/healthz": 200}


@pytest.mark.parametrize(
    "path", ["/%68ealthz", "/healthz/%2E", "/x/../healthz", "/healthz%2F", "/%5Chealthz", "/./docs"]
)
def test_another_spelling_of_a_path_is_unknown(client: Any, path: str):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("word", ["%C3%A7", "a%20b", "a..b", ".a", "a%3Ab", "..."])
def test_what_has_to_be_encoded_may_be(client: Any, word: str):
    # It comes to the route, which knows no such id.
    assert client.get(f"/tasks/{word}", headers=bearer("elder")).status_code == 400
