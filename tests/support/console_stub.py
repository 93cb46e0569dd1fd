"""A WSGI application with the page of the console and an API whose answers a test sets, for views in states that a real
service is rarely in. It is no model of the service: a deed changes only what the test says."""

import json
import queue
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from werkzeug.wrappers import Request, Response

from app.console.assets import read_assets
from app.console.page_routes import CONSOLE
from app.console.web_page import html, policy

Json = dict[str, Any]
TOKEN = "a-token-of-the-stub"
AYSE_HOME = (40.9880, 29.0280)


def instant(seconds: float = 0) -> str:
    """So many seconds from now."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def task_json(number: int, **more: Any) -> Json:
    task_id = f"01900000-0000-7000-8000-{number:012d}"
    elder = {"id": 100_000 + number, "name": f"Yaşlı {number}", "phone": f"+9055501{number:05d}"}
    lat, lon = AYSE_HOME
    place = {"lat": lat + number * 13 % 37 * 0.0004 - 0.006, "lon": lon + number * 7 % 41 * 0.0005 - 0.003}
    plain: Json = {"id": task_id, "status": "PENDING", "createdAt": instant(-60 * (number % 90 + 1)), "note": None}
    plain |= {"asked": 1, "remaining": 8, "nextStepAt": instant(300), "location": place, "elder": elder}
    plain |= {"student": None, "currentOffer": None, "outcome": None, "assignedAt": None, "startedAt": None}
    return plain | {"endedAt": None, "searchEndsAt": instant(3600)} | more


def student_json(number: int, **more: Any) -> Json:
    lat, lon = AYSE_HOME
    place = {"lat": lat + number * 17 % 61 * 0.0003 - 0.006, "lon": lon + number * 29 % 67 * 0.0004 - 0.004}
    plain: Json = {"id": number, "name": f"Öğrenci {number}", "phone": f"+9055502{number:05d}", "onDuty": True}
    plain |= {"active": True, "suspended": False, "busy": False, "completedThisMonth": number % 4, "location": place}
    return plain | {"offeredTaskId": None} | more


@dataclass
class ConsoleStub:
    me: Json = field(default_factory=lambda: {"id": 2, "role": "COORDINATOR", "name": "Zeynep Koç", "locale": "tr"})
    settings: Json = field(default_factory=lambda: {"demoSignIn": False, "signInPage": None, "tileAddress": None})
    tasks: dict[str, Json] = field(default_factory=dict[str, Json])
    students: list[Json] = field(default_factory=list[Json])
    elders: list[Json] = field(default_factory=list[Json])
    offers: list[Json] = field(default_factory=list[Json])
    candidates: list[Json] = field(default_factory=list[Json])
    answers: dict[str, Callable[[Json], tuple[int, Any]]] = field(default_factory=dict[str, Any])
    """By method and path, such as `PUT /tasks/…/assign`, from the body of a request to status and answer."""
    calls: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    """What was asked, except for files and reads of a stream."""
    _streams: list["queue.Queue[bytes]"] = field(default_factory=list["queue.Queue[bytes]"])
    _event_id: int = 0

    def add(self, *tasks: Json) -> None:
        self.tasks |= {task["id"]: task for task in tasks}

    def send(self, event_type: str, **fields: Any) -> None:
        self._event_id += 1
        event = {"id": self._event_id, "type": event_type, "at": instant(), **fields}
        for stream in self._streams:
            stream.put(_block(event))

    @property
    def streams_opened(self) -> int:
        return len(self._streams)

    def called(self, name: str) -> list[Json]:
        return [body for called, body in list(self.calls) if called == name]

    def __call__(self, environ: Any, start_response: Any) -> Any:
        return self._answer(Request(environ))(environ, start_response)

    def _answer(self, request: Request) -> Response:
        path = request.path
        if path == "/console" or path.startswith("/console/"):
            headers = {"Content-Security-Policy": policy(CONSOLE, None)}
            return Response(html(CONSOLE, read_assets()), headers=headers, content_type="text/html; charset=utf-8")
        if path.startswith("/assets/"):
            return _asset(path)
        if path == "/events":
            return Response(self._stream(), content_type="text/event-stream; charset=utf-8")
        name = f"{request.method} {path}"
        body = request.get_json(silent=True) or request.args.to_dict()
        self.calls.append((name, body))
        status, answer = self.answers.get(name, self._usual)(body | {"name": name})
        return Response(
            "" if answer is None else json.dumps(answer),
            status,
            content_type="application/json" if status < 400 else "application/problem+json",
        )

    def _stream(self) -> Iterator[bytes]:
        mine: queue.Queue[bytes] = queue.Queue()
        self._streams.append(mine)
        yield _block({"id": self._event_id, "type": "READY", "at": instant()})
        while True:
            yield mine.get()

    def _usual(self, request: Json) -> tuple[int, Any]:
        name = request["name"]
        if task := re.fullmatch(r"GET /tasks/([^/]+)", name):
            found = self.tasks.get(task[1])
            return (200, found) if found else problem(404, "task_not_found")
        if re.fullmatch(r"GET /tasks/[^/]+/offers", name):
            return 200, {"items": self.offers}
        if re.fullmatch(r"GET /tasks/[^/]+/candidates", name):
            return 200, {"items": _with(self.candidates, request, "name")}
        lists = {
            "GET /api/v1/board": list(self.tasks.values()),
            "GET /api/v1/students": [
                student
                for student in _with(self.students, request, "name")
                if request.get("onDuty") in (None, str(student["onDuty"]).lower())
            ],
            "GET /api/v1/elders": _with(self.elders, request, "name"),
        }
        if name in lists:
            return 200, _page(lists[name], request)
        if name == "GET /api/v1/map":
            return 200, {"students": [_on_map(student) for student in self.students], "truncated": False}
        if name == "GET /me":
            return 200, self.me
        if name == "GET /page-settings.json":
            return 200, self.settings
        return problem(404, "route_unknown")


def problem(status: int, code: str, detail: str = "") -> tuple[int, Json]:
    return status, {"status": status, "code": code, "title": code, "detail": detail}


def _with(items: list[Json], request: Json, field_name: str) -> list[Json]:
    search = request.get("search", "").lower()
    return [item for item in items if search in item[field_name].lower()]


def _page(items: list[Json], request: Json) -> Json:
    start, limit = int(request.get("cursor", 0)), int(request.get("limit", 20))
    end = start + limit
    return {"items": items[start:end], "nextCursor": str(end) if end < len(items) else None}


def _on_map(student: Json) -> Json:
    kept = {name: student[name] for name in ("id", "name", "onDuty", "busy", "offeredTaskId")}
    return kept | student["location"]


def _block(event: Json) -> bytes:
    number = f"id: {event['id']}\n" if "id" in event else ""
    return f"{number}event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _asset(path: str) -> Response:
    found = read_assets().files.get(path.split("/", 3)[3])
    return Response(found.content, content_type=found.content_type) if found else Response("", 404)
