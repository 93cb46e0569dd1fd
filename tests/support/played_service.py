"""A service for tests of phones: the real pages, and answers of the API that a test sets. What the API itself does is
tested elsewhere; here it must be able to fail, to be slow, and to be in states that are hard to reach."""

import itertools
import json
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from flask import Flask, Response, request

from app.api.routing import Route
from app.console.page_routes import routes as page_routes
from tests.support.api import settings_for_tests

Json = dict[str, Any]
HELPLINE = "+902165550100"
PLACE = {"lat": 40.9871, "lon": 29.0282}


def at(seconds: float) -> str:
    """A time as the API writes it, so many seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def person(role: str, number: int, name: str, **more: Any) -> Json:
    on_duty = True if role == "STUDENT" else None
    fields = {"id": number, "role": role, "name": name, "locale": "tr", "onDuty": on_duty} | {
        "distanceM": None,
        "reserved": True,
    }
    return fields | more


AYSE = person("ELDER", 1, "Ayşe Yılmaz")
AHMET = person("STUDENT", 2, "Ahmet Çelik")


def task(status: str = "PENDING", **more: Any) -> Json:
    student = {"id": 2, "name": "Ahmet Çelik", "phone": "+905550100011"}
    fields = {
        "id": str(uuid4()),
        "status": status,
        "createdAt": at(-60),
        "note": None,
        "asked": 0,
        "remaining": 5,
        "nextStepAt": None,
        "location": PLACE,
        "elder": {"id": 1, "name": "Ayşe Yılmaz", "phone": "+905550100002"},
        "student": student if status in ("ASSIGNED", "STARTED", "COMPLETED") else None,
        "currentOffer": None,
    }
    return fields | more


def asked(name: str = "Ahmet", turn: int = 1, seconds: float = 180) -> Json:
    """A task whose student number `turn` is being asked."""
    return task(asked=turn, currentOffer={"deadline": at(seconds), "studentName": name}, nextStepAt=at(seconds))


def offer(seconds: float = 600, **more: Any) -> Json:
    fields = {"taskId": str(uuid4()), "deadline": at(seconds), "distanceM": 300.0, "elderName": "Ayşe", "note": None}
    return fields | more


@dataclass
class PlayedService:
    """`people` is who is behind a token. `tasks` are those that still can be read when they have ended."""

    people: dict[str, Json] = field(default_factory=lambda: {"ayse": dict(AYSE), "ahmet": dict(AHMET)})
    tasks: dict[str, Json] = field(default_factory=dict)
    open_tasks: dict[int, Json] = field(default_factory=dict)
    offers: dict[int, Json] = field(default_factory=dict)
    errors: dict[str, tuple[int, Json]] = field(default_factory=dict)
    """What is answered instead, by "METHOD /path"."""
    calls: list[tuple[str, str, Any, Any]] = field(default_factory=list)
    """Method, path, body and `Idempotency-Key` of all that changes something."""
    streams: bool = True
    settings: Json = field(default_factory=lambda: {"demoSignIn": True, "signInPage": None, "vapidPublicKey": None})
    health: str = "ready"
    ahead_s: float = 0
    """How far its clock is ahead of ours, for a page whose time passes faster."""
    pushes: list[Json] | None = None
    """Those that were recorded, the newest first; None for a copy that sends them."""
    on_press: Callable[[], Json] = task
    _listeners: list["queue.Queue[Json]"] = field(default_factory=list)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _presses: dict[str, Json] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def me_of(self, token: str) -> Json:
        one = self.people[token]
        mine = {"openTask": self.open_tasks.get(one["id"]), "offer": self.offers.get(one["id"])}
        return one | mine | {"helpline": HELPLINE, "serverTime": at(self.ahead_s)}

    def happen(self, type_: str = "TASK_OFFERED") -> None:
        """An event. It says only that something has changed: phones read the rest."""
        event = {"id": next(self._ids), "type": type_, "at": at(0)}
        for listener in list(self._listeners):
            listener.put(event)

    def show(self, user_id: int, shown: Json | None) -> None:
        """Sets the open task of a user. The one before stays readable."""
        if shown:
            self.open_tasks[user_id] = self.tasks[shown["id"]] = shown
        else:
            self.open_tasks.pop(user_id, None)
        self.happen()

    def end(self, user_id: int, status: str) -> None:
        ended: Json = self.open_tasks[user_id] | {"status": status, "currentOffer": None}
        self.tasks[ended["id"]] = ended
        self.show(user_id, None)

    def called(self, method: str, path: str) -> list[tuple[Any, Any]]:
        return [(body, key) for m, p, body, key in self.calls if (m, p) == (method, path)]

    def press(self, token: str, key: str | None) -> tuple[Json, int]:
        with self._lock:
            known = self._presses.get(key or "") or self.open_tasks.get(self.people[token]["id"])
            if known:
                return known, 200
            made = self.on_press()
            self._presses[str(key or made["id"])] = made
        self.show(self.people[token]["id"], made)
        return made, 201

    def stream(self) -> Iterator[str]:
        mine: queue.Queue[Json] = queue.Queue()
        self._listeners.append(mine)
        try:
            yield _wire({"id": 0, "type": "READY", "at": at(0)})
            while True:
                yield _wire(mine.get())
        finally:
            self._listeners.remove(mine)


def _wire(event: Json) -> str:
    return f"id: {event['id']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"


def app_of(service: PlayedService) -> Flask:
    app = Flask("played", static_folder=None)
    for route in page_routes.all:
        app.add_url_rule(route.rule, route.view.__name__, _page_view(route), methods=[route.method])
    app.add_url_rule("/page-settings.json", "settings", view_func=lambda: service.settings)
    app.add_url_rule("/readyz", "health", lambda: ({"status": service.health}, _status_of(service.health)))
    app.add_url_rule("/demo/people", "people", view_func=lambda: {"items": list(service.people.values())})
    app.add_url_rule("/demo/sign-in", "sign_in", lambda: _demo(service), methods=["POST"])
    app.add_url_rule("/events", "stream", lambda: _events(service))
    app.add_url_rule("/<path:path>", "calls", lambda path: _api(service), methods=["GET", "POST", "PUT", "DELETE"])
    return app


def _status_of(health: str) -> int:
    return 503 if health == "unready" else 200


def _page_view(route: Route) -> Any:
    services = SimpleNamespace(settings=settings_for_tests())

    def answer(**parameters: str) -> Response:
        call: Any = SimpleNamespace(headers=request.headers, services=services)
        takes_query = {"query": None} if route.query else {}
        reply: Any = route.view(call, **takes_query, **parameters)
        return Response(reply.body, reply.status or 200, {"Content-Type": route.content_type, **reply.headers})

    return answer


def _demo(service: PlayedService) -> Json:
    wanted = request.get_json()["userId"]
    return {"token": next(token for token, one in service.people.items() if one["id"] == wanted)}


def _events(service: PlayedService) -> Response:
    if not service.streams:
        return _problem(404, {"code": "route_unknown"})
    if _token() not in service.people:
        return _problem(401, {"code": "unauthenticated"})
    return Response(service.stream(), content_type="text/event-stream; charset=utf-8")


def _api(service: PlayedService) -> Any:
    path, token = request.path, _token()
    if request.method != "GET":
        key = request.headers.get("Idempotency-Key")
        service.calls.append((request.method, path, request.get_json(silent=True), key))
    if error := service.errors.get(f"{request.method} {path}"):
        return _problem(*error)
    if token not in service.people:
        return _problem(401, {"code": "unauthenticated"})
    return _answer(service, token, request.method, path)


def _answer(service: PlayedService, token: str, method: str, path: str) -> Any:
    one = service.people[token]
    match method, path.strip("/").split("/"):
        case "GET", ["me"]:
            return service.me_of(token)
        case "GET", ["tasks"]:
            return {"items": list(service.tasks.values()), "nextCursor": None}
        case "POST", ["tasks"]:
            made, status = service.press(token, request.headers.get("Idempotency-Key"))
            return made, status
        case "GET", ["tasks", task_id] if task_id in service.tasks:
            return service.tasks[task_id]
        case "GET", ["me", "pushes"] if service.pushes is not None:
            return {"items": service.pushes[:1], "nextCursor": None}
        case "PUT", ["tasks", task_id, deed]:
            return _deed(service, one, task_id, deed)
        case "PUT", ["me", "availability"]:
            one["onDuty"] = request.get_json()["onDuty"]
            return "", 204
        case "PUT", ["me", *_]:
            return "", 204
    return _problem(404, {"code": "route_unknown"})


AFTER = {"accept": "ASSIGNED", "start": "STARTED", "complete": "COMPLETED", "cancel": "CANCELLED"}


def _deed(service: PlayedService, one: Json, task_id: str, deed: str) -> Json:
    if deed in ("accept", "reject"):
        service.offers.pop(one["id"], None)
    known = service.tasks.get(task_id) or task(id=task_id)
    changed = task(AFTER.get(deed, "PENDING"), id=task_id, note=known["note"])
    service.tasks[task_id] = changed
    is_open = changed["status"] in ("ASSIGNED", "STARTED")
    for number in [user_id for user_id, shown in service.open_tasks.items() if shown["id"] == task_id]:
        del service.open_tasks[number]
    if is_open:
        service.open_tasks[one["id"]] = changed
    service.happen()
    return changed


def _token() -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def _problem(status: int, fields: Json) -> Response:
    problem = {"type": "about:blank", "title": "Error", "status": status, "detail": fields["code"]} | fields
    headers = {"Retry-After": "1"} if status in (429, 503) else {}
    return Response(json.dumps(problem), status, headers, content_type="application/problem+json")
