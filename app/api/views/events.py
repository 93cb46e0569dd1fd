"""Streams of events."""

from collections.abc import AsyncIterable
from uuid import UUID

from app.api.access import SIGNED_IN
from app.api.auth import bearer_token
from app.api.routing import Call, Header, Reply, Routes
from app.api.schemas_events import EventJson, EventsQuery
from app.foundation.errors import AppError, InvalidValue
from app.foundation.pages import BIGINT_MAX
from app.matching.contract import TaskNotFound
from app.realtime.contract import EventsGone, EventType, NoRoomForStream, TooManyStreams, Wanted

routes = Routes("Events")

LAST_EVENT_ID = "Last-Event-ID"
RESUME = Header(LAST_EVENT_ID, "The last event that the caller has: the stream goes on after it.", 19)
CONTENT_TYPE = "text/event-stream; charset=utf-8"
ERRORS: tuple[type[AppError], ...] = (InvalidValue, EventsGone, TooManyStreams, NoRoomForStream)


@routes.add(
    "GET",
    "/tasks/{taskId}/events",
    who=SIGNED_IN,
    answers={200: EventJson},
    content_type=CONTENT_TYPE,
    headers=(RESUME,),
    errors=(*ERRORS, TaskNotFound),
)
def stream_task_events(call: Call, task_id: UUID) -> Reply:
    """Follow one task.

    Server-Sent Events, as `GET /events`.
    """
    call.services.matching.task(call.caller, task_id)
    return _streaming(call.site.realtime.open_stream(call.caller, _token(call), Wanted(task_id), _last_event_id(call)))


@routes.add(
    "GET",
    "/events",
    who=SIGNED_IN,
    answers={200: EventJson},
    content_type=CONTENT_TYPE,
    headers=(RESUME,),
    errors=ERRORS,
)
def stream_events(call: Call, query: EventsQuery) -> Reply:
    """Follow what happens.

    Server-Sent Events: READY first, then events as they happen, TIME every 15 s, and END before the server ends the
    stream. Elders and students get what concerns them, coordinators what happens in their institution. After a break,
    connect again with `Last-Event-ID`; 410 means that it is too long ago, so read the present state instead.
    """
    types = None if query.types is None else frozenset(map(EventType, query.types.split(",")))
    wanted = Wanted(types=types)
    return _streaming(call.site.realtime.open_stream(call.caller, _token(call), wanted, _last_event_id(call)))


def _streaming(stream: AsyncIterable[bytes]) -> Reply:
    # Some proxies collect an answer until it is complete.
    return Reply(stream, headers={"X-Accel-Buffering": "no"})


def _token(call: Call) -> str:
    return bearer_token(call.headers.get("Authorization"))


def _last_event_id(call: Call) -> int | None:
    given = call.headers.get(LAST_EVENT_ID)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= 19 and int(given) <= BIGINT_MAX):
        raise InvalidValue(LAST_EVENT_ID, "is not the id of an event")
    return int(given)
