"""The filters of the audit trail over HTTP."""

from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from tests.support.world import World

AUDIT = "/api/v1/audit"
UUID = "01900000-0000-7000-8000-000000000007"


def deeds(call: Any, query: str) -> list[str]:
    """The deeds that a filter finds, on pages of two."""
    found: list[str] = []
    cursor = ""
    while True:
        page = call("admin", "GET", f"{AUDIT}?limit=2{query}{cursor}").json
        found += [entry["subject"] for entry in page["items"]]
        if page["nextCursor"] is None:
            return found
        cursor = f"&cursor={page['nextCursor']}"


def test_deeds_are_found_by_who_what_whom_and_when(call: Any, services: Services, world: World) -> None:
    elder, student = world.ids["elder"], world.ids["student"]
    change, cancel = "PATCH /users/{userId}", "PUT /tasks/{taskId}/cancel"
    assert call("admin", "PATCH", f"/users/{elder}", {"locale": "en"}).status_code == 200
    assert call("admin", "PATCH", f"/users/{student}", {"locale": "en"}).status_code == 200
    with services.db.reading() as conn:
        between = conn.execute(text("SELECT clock_timestamp()")).scalar_one().isoformat().replace("+00:00", "Z")
    assert call("coordinator", "PUT", f"/tasks/{world.task_id}/cancel").status_code == 200
    new = call("admin", "POST", "/users", {"role": "ELDER", "name": "Fatma"}).json["id"]
    everything = ["POST /users", cancel, change, change]
    assert deeds(call, "") == everything
    assert deeds(call, f"&author=user:{world.ids['coordinator']}") == [cancel]
    assert deeds(call, f"&author=user:{world.ids['admin']}&deed=POST /users") == ["POST /users"]
    assert deeds(call, f"&subjectKind=USER&subjectId={new}") == ["POST /users"]
    assert deeds(call, f"&subjectKind=TASK&subjectId={world.task_id}") == [cancel]
    assert deeds(call, f"&until={between}") == [change, change]
    assert deeds(call, f"&since={between}&subjectKind=USER&subjectId={elder}") == []
    assert deeds(call, "&author=operator") == deeds(call, "&deed=users") == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("author=Zeynep", "author"),
        ("author=user:0", "author"),
        ("deed=", "deed"),
        ("subjectKind=HOUSE&subjectId=7", "subjectKind"),
        ("subjectId=7", "subjectKind"),
        ("subjectKind=USER", "subjectId"),
        (f"subjectKind=USER&subjectId={UUID}", "subjectId"),
        ("subjectKind=TASK&subjectId=7", "subjectId"),
        ("subjectKind=USER&subjectId=7%25", "subjectId"),
        ("since=yesterday", "since"),
        ("since=2026-03-12T20:55:00", "since"),
        ("since=2026-03-12T20:55:00Z&until=2026-03-12T20:55:00Z", "until"),
        ("who=me", "who"),
    ],
)
def test_filter_that_is_wrong_is_named(call: Any, query: str, field: str) -> None:
    answer = call("admin", "GET", f"{AUDIT}?{query}")
    assert (answer.status_code, [error["field"] for error in answer.json["errors"]]) == (400, [field])
