"""What the console of the coordinators reads over HTTP: the board, candidates, people, the map, figures, health."""

from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from tests.support.world import World

PHONE = "+905550100002"


def test_board_and_candidates_have_the_fields_that_pages_use(call: Any, world: World):
    [task] = call("coordinator", "GET", "/api/v1/board").json["items"]
    assert task.keys() == {
        *("id", "status", "createdAt", "note", "asked", "remaining", "nextStepAt", "location", "elder", "student"),
        # The times of what has not happened are absent.
        *("currentOffer", "outcome", "searchEndsAt"),
    }
    assert (task["id"], task["elder"]["name"]) == (str(world.task_id), "Ayşe Yılmaz")
    assert task["currentOffer"].keys() == {"deadline", "studentId", "studentName"}
    found = call("coordinator", "GET", f"/tasks/{world.task_id}/candidates?search=celik&limit=5").json["items"]
    assert [one.pop("distanceM") for one in found] == [pytest.approx(111, abs=1)]
    assert found == [
        {
            "studentId": world.ids["student"],
            "name": "Ahmet Çelik",
            "phone": PHONE,
            "completedThisMonth": 0,
            "onDuty": True,
            "obstacle": "ASKED_BEFORE",
            "askedBefore": "PENDING",
        }
    ]


def test_people_and_the_map_have_the_fields_that_pages_use(call: Any, world: World):
    id_, place = world.ids["student"], {"lat": 40.988, "lon": 29.028}
    [student] = call("coordinator", "GET", "/api/v1/students?search=ahmet&onDuty=true").json["items"]
    assert student == {
        "id": id_,
        "name": "Ahmet Çelik",
        "phone": PHONE,
        "onDuty": True,
        "active": True,
        "suspended": False,
        "busy": True,
        "completedThisMonth": 0,
        "location": place,
    }
    [elder] = call("coordinator", "GET", "/api/v1/elders?search=ayse").json["items"]
    assert (elder["id"], elder["openTaskId"]) == (world.ids["elder"], str(world.task_id))
    shown = call("coordinator", "GET", "/api/v1/map?south=40.9&west=29&north=41&east=29.1").json
    of_student = {"id": id_, "name": "Ahmet Çelik", **place, "onDuty": True, "busy": True}
    assert shown == {"students": [{**of_student, "offeredTaskId": str(world.task_id)}], "truncated": False}


@pytest.mark.parametrize(
    ("box", "field"),
    [
        ("south=41&west=29&north=40&east=30", "south"),
        ("south=40&west=30&north=41&east=29", "west"),
        ("south=40&west=29&north=91&east=30", "north"),
        ("south=40&west=29&north=41", "east"),
    ],
)
def test_what_is_no_box_is_refused(call: Any, box: str, field: str):
    answer = call("coordinator", "GET", f"/api/v1/map?{box}")
    assert (answer.status_code, answer.get_json(force=True)["errors"][0]["field"]) == (400, field)


def test_figures_are_of_this_month_and_of_the_callers_institution(call: Any, services: Services, world: World):
    call("student", "PUT", f"/tasks/{world.task_id}/accept")
    found = call("coordinator", "GET", "/api/v1/figures").json
    assert found.keys() == {"month", "computedAt", "tasks", "toAccept", "waiting", "unmet", "load", "silence"}
    assert found["month"] == found["computedAt"][:7] or found["computedAt"][8:10] in ("01", "28", "29", "30", "31")
    assert found["tasks"] == {"created": 1, "completed": 0, "timedOut": 0, "cancelled": 0}
    assert [day.keys() for day in found["toAccept"]] == [{"day", "count", "p50S", "p90S"}]
    assert found["waiting"]["accept"].keys() == {"tasks", "meanS", "p50S", "p90S", "p95S", "p99S"}
    assert found["load"] == [{"completed": 0, "students": 2}]
    [day] = found["silence"]
    assert (day["asked"], day["accepted"], day["rejected"], day["expired"]) == (1, 1, 0, 0)
    with services.db.transaction() as conn:
        conn.execute(text("UPDATE users SET institution_id = 3 WHERE role = 'COORDINATOR'"))
    assert call("coordinator", "GET", "/api/v1/figures").json["tasks"]["created"] == 0
    assert call("admin", "GET", "/api/v1/figures").json == found, "kept for a minute"
    assert call("coordinator", "GET", "/api/v1/figures?month=2026-13").status_code == 400


def test_health_tells_that_nobody_sends_messages(call: Any, services: Services, world: World):
    """As when the role delivery stands still: what was sent before it stopped was in time."""
    with services.db.transaction() as conn:
        conn.execute(text("UPDATE notifications SET status = 'SENT', finished_at = created_at WHERE status = 'DEAD'"))
    parts = {part["name"]: part for part in call("coordinator", "GET", "/api/v1/health").json["parts"]}
    assert parts["delivery"]["status"] == "ok"
    message = {"notificationType": "IN_APP", "recipient": f"user:{world.ids['elder']}", "subject": "s", "body": "b"}
    assert call("admin", "POST", "/api/notifications", message).status_code == 202
    with services.db.transaction() as conn:
        conn.execute(
            text("UPDATE notifications SET due_at = clock_timestamp() - interval '40 s' WHERE status = 'ACCEPTED'")
        )
    parts = {part["name"]: part for part in call("coordinator", "GET", "/api/v1/health").json["parts"]}
    assert parts["delivery"]["status"] == "late"
    assert parts["delivery"]["detail"].endswith("waits for 40 s")


def test_health_tells_what_is_late_and_which_provider_is_not_called(call: Any, services: Services, world: World):
    with services.db.transaction() as conn:
        conn.execute(text("DELETE FROM new_events"))
    found = call("coordinator", "GET", "/api/v1/health").json
    dead_letters = call("coordinator", "GET", "/api/v1/dead-letters?status=OPEN").json["items"]
    assert (found["status"], found["checks"]["redis"], found["openDeadLetters"]) == ("ready", "ok", len(dead_letters))
    assert {part["name"]: part["status"] for part in found["parts"]} == {
        **dict.fromkeys(("database", "redis", "matcher", "jobs", "events"), "ok"),
        # Of the world's few messages one was given up, and its list is months old.
        **dict.fromkeys(("delivery", "lists"), "late"),
    }
    for name in ("fcm", "ornek.org:443"):
        services.breakers.tell(name, succeeded=0, failed=[f"recipient-{number}" for number in range(20)])
    with services.db.transaction() as conn:
        conn.execute(text("UPDATE tasks SET next_step_at = clock_timestamp() - interval '70 s'"))
        conn.execute(
            text("INSERT INTO new_events (type, at) SELECT 'DUTY_CHANGED', clock_timestamp() - interval '40 s'")
        )
        conn.execute(text("UPDATE jobs SET due_at = clock_timestamp() - interval '5 min'"))
        conn.execute(text("UPDATE users SET institution_id = 3 WHERE role = 'COORDINATOR'"))
    found = call("coordinator", "GET", "/api/v1/health").json
    assert (found["status"], found["checks"]["matcher"], found["openDeadLetters"]) == ("degraded", "failed", 0)
    late = {part["name"]: part["detail"] for part in found["parts"] if part["status"] == "late"}
    assert late["matcher"] == "tasks due: 1, the longest for 70 s"
    assert late["jobs"] == "running: 0, waiting: 1, the longest for 300 s"
    assert late["events"] == "the oldest that streams have not told waits for 40 s"
    assert found["breakers"] == [{"name": "fcm", "state": "open"}]
