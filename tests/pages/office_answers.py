"""What the service answers to the views of the console that are not live: a month with figures, messages that failed,
people, lists, jobs, plans, the audit trail, and health."""

import json
from collections.abc import Callable
from typing import Any

from tests.pages.console_pages import HOSTILE, busy_afternoon
from tests.support.console_stub import ConsoleStub, Json, instant

ADMIN = {"id": 1, "role": "ADMIN", "name": "Elif Aydın", "locale": "tr"}
MONTH = "2026-10"
LETTER = "01900000-0000-7000-8000-0000000000d1"
NOTIFICATION = "01900000-0000-7000-8000-0000000000e1"
JOB = "01900000-0000-7000-8000-0000000000f1"
ROW = {"createdAt": instant(-9000), "updatedAt": instant(-9000), "retiredAt": None}

Answer = Callable[[Json], tuple[int, Any]]


def office(me: Json | None = None) -> ConsoleStub:
    """For an admin, unless `me` is somebody else."""
    stub = busy_afternoon()
    stub.me = me or dict(ADMIN)
    for name, answer in ANSWERS.items():
        stub.answers[name] = _constant(answer)
    return stub


def _constant(answer: Any) -> Answer:
    return lambda _: (200, answer)


def _list(*items: Json, next_cursor: str | None = None) -> Json:
    return {"items": list(items), "nextCursor": next_cursor}


def figures_json() -> Json:
    days = [f"{MONTH}-{day:02}" for day in range(1, 32) if day % 9]
    cell_height, cell_width = 180 / 2**15, 360 / 2**15
    accept = {"tasks": 302, "meanS": 260.0, "p50S": 180, "p90S": 820, "p95S": 1100, "p99S": 2400}
    return {
        "month": MONTH,
        "computedAt": instant(),
        "tasks": {"created": 331, "completed": 288, "timedOut": 21, "cancelled": 14},
        "toAccept": [
            {"day": day, "count": 8 + at % 6, "p50S": 120 + at * 37 % 140, "p90S": 420 + at * 151 % 900}
            for at, day in enumerate(days)
        ],
        "waiting": {"accept": accept, "arrive": accept | {"p50S": 1020, "p90S": 2100}},
        "unmet": [
            {"lat": 40.98 + row * cell_height, "lon": 29.02 + column * cell_width, "count": count}
            for row, column, count in ((0, 0, 7), (1, 2, 4), (2, 1, 9), (0, 1, 1))
        ],
        "load": [{"completed": times, "students": count} for times, count in enumerate((41, 60, 38, 22, 9, 0, 3))],
        "silence": [
            {"day": day, "asked": 20, "accepted": 8 + at % 5, "rejected": 3 + at % 3, "expired": 2 + at * 7 % 6}
            for at, day in enumerate(days)
        ],
    }


def empty_figures(month: str) -> Json:
    nothing: Json = {"tasks": 0, "meanS": None, "p50S": None, "p90S": None, "p95S": None, "p99S": None}
    tasks = dict.fromkeys(("created", "completed", "timedOut", "cancelled"), 0)
    found: Json = {"month": month, "computedAt": instant(), "tasks": tasks}
    found |= {"waiting": {"accept": nothing, "arrive": nothing}, "load": [{"completed": 0, "students": 12}]}
    return found | {"toAccept": [], "unmet": [], "silence": []}


def letter_json(**more: Any) -> Json:
    plain: Json = {"id": LETTER, "status": "OPEN", "actionPlanId": 3, "stepOrder": 1, "channelType": "push"}
    plain |= {"errorCode": "UNREGISTERED", "errorMessage": "", "retryable": False, "retryCount": 4}
    plain |= {"failedAt": instant(-600), "notificationId": NOTIFICATION, "actionId": None, "traceId": None}
    return plain | {"closedAt": None, "closedBy": None} | more


def user_json(number: int, **more: Any) -> Json:
    plain: Json = {"id": number, "role": "STUDENT", "name": f"Kişi {number}", "phone": "+905550100011", "locale": "tr"}
    plain |= {"location": {"lat": 40.98, "lon": 29.03}, "institutionId": 1, "firebaseUid": None, "active": True}
    return plain | {"onDuty": True, "createdAt": instant(-9000)} | more


def job_json(**more: Any) -> Json:
    plain: Json = {"id": JOB, "name": "fairness_report", "params": {"month": MONTH}, "taskType": "io_bound"}
    plain |= {"status": "RUNNING", "origin": "HTTP", "requestedBy": 1, "scheduleName": None, "scheduledFor": None}
    plain |= {"createdAt": instant(-60), "startedAt": instant(-50), "finishedAt": None, "cancelRequestedAt": None}
    plain |= {"progress": {"done": 3, "total": 8, "note": "students"}, "error": None, "result": None, "output": ""}
    return plain | {"claims": 1, "tries": 1, "maxRetries": 2, "timeoutS": None, "artifacts": []} | more


def _listed(job: Json) -> Json:
    """Without what only the job in full has."""
    in_full = {"result", "output", "claims", "tries", "maxRetries", "timeoutS", "artifacts"}
    return {name: value for name, value in job.items() if name not in in_full}


def script_json(name: str, parameters: Json | None = None, **more: Any) -> Json:
    plain: Json = {"name": name, "isShipped": True, "error": None, "summary": f"What {name} does.", "description": ""}
    plain |= {"taskType": "io_bound", "maxRetries": 2, "timeoutS": None}
    return plain | {"parameters": {"type": "object", "properties": parameters or {}}} | more


FAIRNESS = {
    "month": {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "default": None,
        "description": "The last one if empty.",
    },
    "least_people": {"type": "integer", "default": 5, "description": "Fewer elders are not shown."},
    "language": {"type": "string", "enum": ["tr", "en"], "default": "tr", "description": "Of the page."},
    "kinds": {"type": "array", "items": {"type": "string"}, "default": [], "description": "All if empty."},
    "fix": {"type": "boolean", "default": False, "description": "Also repair."},
}


def template_json(number: int, locale: str, subject: str, body: str) -> Json:
    return {"id": number, **ROW, "key": "matching.on_the_way", "locale": locale, "subject": subject, "body": body}


def _run(number: int, **report: Any) -> Json:
    found: Json = {"kinds": {}, "unchanged": [], "refused": {}, "lists": {}, "people": {}, "reason": None, **report}
    times = {"startedAt": instant(-9000 * number), "finishedAt": instant(-9000 * number + 40)}
    return {"id": 9 - number, "status": "PARTIAL" if "kinds" in report else "SUCCEEDED", **times, "report": found}


def _kind_report(**more: Any) -> Json:
    counts = {"rows": 410, "added": 12, "modified": 3, "removed": 0, "removals_found": 96, "modifications_found": 3}
    return counts | {"removals_held": "TOO_MANY", "modifications_held": None} | more


BAD_ROW = {"line": 7, "flaw": "PHONE", "field": "tel"}
PLAN = {"id": 3, **ROW, "key": "matching.on_the_way", "name": "Yola çıktı", "description": "Yaşlıya söylenir."}
STEP: Json = {"id": 5, **ROW, "actionPlanId": 3, "stepOrder": 1, "channelType": "push", "audience": "PERSON"}
STEP |= {"templateKey": "matching.on_the_way", "onFailure": "STOP", "fallback": ["sms"], "withinS": 60}
AUDIT: Json = {"id": 71, "author": "user:2", "notificationId": NOTIFICATION, "recipient": "/users/6", "body": "Change."}
AUDIT |= {"subject": "PATCH /users/{userId}", "writtenAt": instant(-30), "previousHash": "0" * 64, "hash": "ab" * 32}
CHANGE = {"table": "users", "row": {"id": 6}, "before": {"name": "A***"}, "after": {"name": HOSTILE}}
ATTEMPT = {
    "attempt": 1,
    "deviceId": None,
    "outcome": "RECIPIENT_GONE",
    "errorCode": "UNREGISTERED",
    "providerMessageId": None,
}
MESSAGE: Json = {"id": NOTIFICATION, "notificationType": "PUSH", "recipient": "user:6", "subject": "Yola çıktı"}
MESSAGE |= {"recipientUserId": 6, "priority": "URGENT", "status": "DEAD", "metadata": {}, "taskId": None}
MESSAGE |= {"body": f"{HOSTILE} yola çıktı!", "createdAt": instant(-900), "expiresAt": None}
MESSAGE |= {"finishedAt": instant(-600), "errorCode": "UNREGISTERED"}
PARTS = (
    ("database", "ok"),
    ("redis", "ok"),
    ("matcher", "ok"),
    ("delivery", "late"),
    ("jobs", "ok"),
    ("events", "ok"),
    ("lists", "down"),
)

ANSWERS: dict[str, Any] = {
    "GET /api/v1/figures": figures_json(),
    "GET /api/v1/dead-letters": _list(
        letter_json(),
        letter_json(id=LETTER[:-1] + "2", errorCode="UNREACHABLE", channelType="sms", retryCount=0, retryable=True),
        letter_json(id=LETTER[:-1] + "3", errorCode="NEW_CODE", channelType="webhook", notificationId=None),
    ),
    f"GET /api/v1/dead-letters/{LETTER}": letter_json(),
    f"GET /api/notifications/{NOTIFICATION}": MESSAGE | {"attempts": [ATTEMPT | {"at": instant(-700)}]},
    "GET /users": _list(
        user_json(6, name=HOSTILE),
        user_json(3, role="ELDER", name="Ayşe Yılmaz", phone=None, institutionId=None, onDuty=None),
        user_json(8, name="Deniz Acar", active=False),
        user_json(1, role="ADMIN", name="Elif Aydın", location=None),
        next_cursor="2",
    ),
    "GET /users/2": user_json(2, name="Zeynep Koç"),
    "GET /api/v1/jobs": _list(
        _listed(job_json()),
        _listed(job_json(id=JOB[:-1] + "2", status="FAILED", origin="SCHEDULE", progress=None)),
    ),
    "GET /api/v1/jobs/catalogue": {
        "items": [
            script_json("fairness_report", FAIRNESS),
            script_json("roster_sync"),
            script_json("own_script", isShipped=False, error="It has no function run.", summary=None, parameters=None),
        ]
    },
    f"GET /api/v1/jobs/{JOB}": job_json(
        status="SUCCEEDED",
        result={"students": 173},
        output="counted\n",
        finishedAt=instant(-5),
        artifacts=[{"name": "figures.csv", "size": 2048}],
    ),
    "GET /api/v1/roster/runs": _list(
        _run(
            1,
            kinds={"students": _kind_report()},
            lists={"students/enrolment": {"records": 410, "bad": 2, "bad_rows": [BAD_ROW]}},
        ),
        _run(2, unchanged=["students", "elders"]),
    ),
    "GET /api/v1/action-plans": _list(
        PLAN | {"status": True}, PLAN | {"id": 4, "name": "Kapalı plan", "status": False}
    ),
    "GET /api/v1/action-plans/3": PLAN | {"status": True},
    "GET /api/v1/action-plans/3/steps": _list(STEP | {"mayArriveTwice": True}),
    "GET /api/v1/templates": _list(
        template_json(21, "tr", "Yardım geliyor", "{{ student }} yola çıktı!"),
        template_json(22, "en", "Help is coming", "{{ student }} is on the way!"),
    ),
    "POST /api/v1/templates/21/preview": {"subject": "Yardım geliyor", "body": "Ahmet yola çıktı!"},
    "POST /api/v1/templates/22/preview": {"subject": "Help is coming", "body": "Ahmet is on the way!"},
    "GET /api/v1/audit": _list(
        AUDIT | {"metadata": json.dumps({"changes": [CHANGE]})},
        AUDIT | {"id": 70, "author": "operator", "subject": "users forget", "metadata": "{}"},
    ),
    "GET /api/v1/health": {
        "status": "degraded",
        "checks": {"database": "ok", "migrations": "ok", "redis": "ok", "matcher": "ok"},
        "parts": [{"name": name, "status": status, "detail": "as it was read"} for name, status in PARTS],
        "breakers": [{"name": "fcm", "state": "closed"}, {"name": "netgsm", "state": "open"}],
        "backlog": 12,
        "openDeadLetters": 3,
    },
}
