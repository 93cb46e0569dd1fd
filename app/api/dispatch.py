"""Runs a route for a request: authenticates the caller, reads the input, builds the response."""

from collections.abc import AsyncIterable, Callable
from typing import Any

import structlog
from flask import g, request
from pydantic import BaseModel
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from app.api import validation
from app.api.access import COORDINATORS
from app.api.errors import BadRequest, BodyTooLarge, FieldCode, FieldError, InvalidInput, UnsupportedMediaType
from app.api.file_download import FileDownload
from app.api.file_upload import FileUpload
from app.api.routing import Answer, Call, Reply, Route
from app.api.site import Site
from app.db.witness import witnessed_by
from app.delivery.contract import WitnessedDeed

JSON = "application/json"


def handler(route: Route, site: Site) -> Callable[..., Response]:
    """The function that Flask calls for one route. Everything that does not depend on the request is prepared once."""
    view, who, body, query, parameters = route.view, route.who, route.body, route.query, route.path_parameters

    def handle(**in_path: str) -> Response:
        caller = site.doorkeeper.admit(who, request.headers.get("Authorization"), in_path)
        call = Call(site, caller, request.headers)
        if caller is not None:
            structlog.contextvars.bind_contextvars(caller_id=caller.id)
        arguments: dict[str, Any] = {}
        for parameter, text in in_path.items():
            name, adapter = parameters[parameter]
            arguments[name] = validation.read_path_parameter(parameter, adapter, text)
        given_query = _query_parameters() if request.query_string else {}
        if query is not None:
            arguments["query"] = validation.read_query(query, given_query)
        elif given_query:
            raise InvalidInput([_unknown(name) for name in given_query])
        if body is not None:
            given_body = _read_body(route, body, call)
            if body is not validation.Nothing:
                arguments["body"] = given_body
        if route.takes_file:
            arguments["upload"] = FileUpload(request.environ, site.services.settings.roster_download_timeout_s)
        return respond(route, _witnessed(route, call, arguments) if route.is_witnessed else view(call, **arguments))

    return handle


def _witnessed(route: Route, call: Call, arguments: dict[str, Any]) -> Answer:
    """Whatever the view does for a coordinator or admin leaves an entry in the audit trail, in its own transaction."""
    caller = call.signed_in
    if caller is None or caller.role not in COORDINATORS:
        return route.view(call, **arguments)
    details = {"requestId": g.request_id, "role": caller.role}
    deed = WitnessedDeed(f"user:{caller.id}", request.path, route.name, route.summary, details)
    with witnessed_by(deed):
        answer = route.view(call, **arguments)
        if not deed.is_recorded:
            # The view has changed no row; for example, it has kept a list on disk. The entry is all there is to commit.
            with call.services.db.transaction():
                pass
    return answer


def _read_body(route: Route, model: type[BaseModel], call: Call) -> BaseModel:
    content = _json_bytes()
    try:
        return validation.read_body(model, content)
    except InvalidInput as invalid:
        if route.find_more_problems is None:
            raise
        named = {error.field for error in invalid.fields}
        more = route.find_more_problems(call, content).items()
        others = [FieldError(field, message, FieldCode.INVALID) for field, message in more if field not in named]
        raise InvalidInput([*invalid.fields, *others]) from None


def _query_parameters() -> dict[str, str]:
    parameters: dict[str, str] = {}
    try:
        given = request.args
    except UnicodeDecodeError:
        raise BadRequest("The query string is not UTF-8.") from None
    for name, values in given.lists():
        if len(values) > 1:
            raise InvalidInput([FieldError(_shown(name), "is given more than once", FieldCode.GIVEN_TWICE)])
        parameters[name] = values[0]
    return parameters


def _unknown(name: str) -> FieldError:
    return FieldError(_shown(name), "is not known here", FieldCode.UNKNOWN_FIELD)


def _shown(name: str) -> str:
    return name if name.isascii() and name.isidentifier() and len(name) <= 64 else "(unknown)"


def _json_bytes() -> bytes:
    content = _bytes()
    if not content:
        return b""
    # Werkzeug silently cuts a body without Content-Length at the limit.
    if request.content_length is None and len(content) >= (request.max_content_length or 0):
        raise BodyTooLarge("The body is too large.")
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if request.mimetype != JSON or charset not in ("utf-8", "utf8", "us-ascii") or encoding != "identity":
        raise UnsupportedMediaType
    return content


def _bytes() -> bytes:
    try:
        return request.get_data(cache=False)
    except HTTPException:
        raise
    except Exception:
        # A broken connection or malformed chunks raise the server's own errors. They are faults of the sender.
        raise BadRequest("The body cannot be read.") from None


def respond(route: Route, answer: Answer) -> Response:
    if answer is None:
        return Response(status=204)
    if isinstance(answer, Reply):
        body, status, headers = answer.body, answer.status or route.default_status, answer.headers
    else:
        body, status, headers = answer, route.default_status, None
    if body is None:
        return Response(status=status, headers=headers)
    if isinstance(body, BaseModel):
        # The model's own serializer writes bytes directly, without building dictionaries first.
        body = body.__pydantic_serializer__.to_json(body, by_alias=True)
    if isinstance(body, FileDownload):
        return body.answer(request.environ, headers or {}, route.content_type)
    if isinstance(body, AsyncIterable):
        # Werkzeug passes it on as it is; `WsgiThreads` knows what to do with it.
        passed_on: Any = body
        return Response(passed_on, status, headers, content_type=route.content_type, direct_passthrough=True)
    content_type = None if headers and "Content-Type" in headers else route.content_type
    return Response(body, status, headers, content_type=content_type)
