"""Builds the OpenAPI 3.1 document from the routes."""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from app.api.access import ADMIN, KindConsumers, Open, Who
from app.api.auth import ConsumerForbidden, RoleForbidden, UserUnknown
from app.api.errors import (
    PROBLEM_JSON,
    BadRequest,
    BodyTooLarge,
    FieldCode,
    HeadersTooLarge,
    InvalidInput,
    MalformedJson,
    RequestTooSlow,
    RouteUnknown,
    Unexpected,
    UnsupportedMediaType,
    WrongMethod,
    status_of,
)
from app.api.identities import (
    AnonymousRefused,
    TokenExpired,
    TokenInvalid,
    TokenMissing,
    TokenRevoked,
    VerifierUnavailable,
)
from app.api.load import Overloaded
from app.api.routing import Route
from app.db.database import DatabaseUnavailable
from app.foundation.errors import AppError, Unavailable
from app.users.contract import UserDeactivated
from app.users.models import Role

TITLE = "Yanında"
VERSION = "0.1.0"
ABOUT = (
    "An elder presses one button; the nearest fair choice of volunteer student is asked, then the next, until one is"
    " on the way.\n\nTimes are RFC 3339 in UTC, distances metres, coordinates WGS 84 degrees. Errors are"
    " `application/problem+json` (RFC 9457) with a stable `code`. Lists are `{items, nextCursor}`, newest first;"
    " send `nextCursor` as `cursor` to get the next page. Every response has `X-Request-Id`."
)

ALL_ROUTES: tuple[type[AppError], ...] = (BadRequest, BodyTooLarge, Unexpected)
SIGNED_IN: tuple[type[AppError], ...] = (
    TokenMissing,
    TokenInvalid,
    TokenExpired,
    TokenRevoked,
    AnonymousRefused,
    UserUnknown,
    UserDeactivated,
    DatabaseUnavailable,
    VerifierUnavailable,
    Overloaded,
    Unavailable,
)
OUTSIDE_ROUTES: tuple[type[AppError], ...] = (RouteUnknown, WrongMethod, RequestTooSlow, HeadersTooLarge)

EVENT_STREAM = "text/event-stream"

Json = dict[str, Any]
Refs = dict[tuple[type[BaseModel], JsonSchemaMode], Json]


def describe(routes: Sequence[Route]) -> Json:
    refs, schemas = _component_schemas(routes)
    paths: Json = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs)
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": VERSION, "description": ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {
            "schemas": schemas | {"Problem": PROBLEM_SCHEMA},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
        "x-errors": error_catalogue(routes),
    }


def to_bytes(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def errors_of(route: Route) -> list[type[AppError]]:
    """All errors of a route: its own, and those that every similar route can return."""
    kinds: list[type[AppError]] = [*ALL_ROUTES]
    if not isinstance(route.who, Open):
        kinds += SIGNED_IN
        if route.who != frozenset(Role):
            kinds.append(RoleForbidden)
    if isinstance(route.who, KindConsumers):
        kinds.append(ConsumerForbidden)
    kinds.append(InvalidInput)
    if route.body is not None:
        kinds += [MalformedJson, UnsupportedMediaType]
    return list(dict.fromkeys([*kinds, *route.errors]))


def error_catalogue(routes: Sequence[Route]) -> list[Json]:
    used = {error for route in routes for error in errors_of(route)} | set(OUTSIDE_ROUTES)
    rows = {(status_of(error), error.code): _meaning(error) for error in used}
    return [{"status": status, "code": code, "meaning": rows[status, code]} for status, code in sorted(rows)]


def _meaning(error: type[AppError]) -> str:
    about = (error.__doc__ or "").strip().partition("\n\n")[0]
    return " ".join(about.split()) or error.code.replace("_", " ").capitalize() + "."


def _component_schemas(routes: Sequence[Route]) -> tuple[Refs, Json]:
    wanted: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {}
    for route in routes:
        if route.body is not None:
            wanted[route.body, "validation"] = None
        for model in route.answers.values():
            if model is not None:
                wanted[model, "serialization"] = None
    refs, definitions = models_json_schema(list(wanted), by_alias=True, ref_template="#/components/schemas/{model}")
    schemas: Json = definitions.get("$defs", {})
    plain = {_plain(name): _renamed(schema) for name, schema in schemas.items()}
    assert len(plain) == len(schemas), "two models or enums have the same name, apart from `Json`"
    return cast(Refs, refs), plain


def _plain(name: str) -> str:
    """For example `TaskPage` for `PageJson_TaskJson_`."""
    page = re.fullmatch(r"PageJson_(\w+?)(?:Json)?_", name)
    return f"{page[1]}Page" if page else name.removesuffix("Json")


def _renamed(node: Any) -> Any:
    if isinstance(node, dict):
        renamed: Json = {}
        for key, value in node.items():  # pyright: ignore[reportUnknownVariableType]
            if key == "$ref":
                prefix, _, name = str(value).rpartition("/")  # pyright: ignore[reportUnknownArgumentType]
                renamed["$ref"] = f"{prefix}/{_plain(name)}"
            elif key != "title" or not isinstance(value, str):
                renamed[key] = _renamed(value)
        return renamed
    if isinstance(node, list):
        return [_renamed(item) for item in node]  # pyright: ignore[reportUnknownVariableType]
    return node


def _operation(route: Route, refs: Refs) -> Json:
    operation: Json = {
        "operationId": route.view.__name__,
        "tags": [route.tag],
        "summary": route.summary,
        "description": "\n\n".join(part for part in (who_may_call(route.who), route.description) if part),
        "parameters": _parameters(route),
        "responses": _responses(route, refs),
        "security": [] if isinstance(route.who, Open) else [{"bearer": []}],
        "x-roles": sorted(_roles(route.who)),
        "x-error-codes": sorted({error.code for error in errors_of(route)}),
    }
    if route.body is not None:
        required = any(field.is_required() for field in route.body.model_fields.values())
        content = {"application/json": {"schema": _renamed(refs[route.body, "validation"])}}
        operation["requestBody"] = {"required": required, "content": content}
    if route.takes_file:
        content = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _roles(who: Who) -> frozenset[Role]:
    if isinstance(who, Open):
        return frozenset()
    return ADMIN if isinstance(who, KindConsumers) else who


def who_may_call(who: Who) -> str:
    if isinstance(who, Open):
        return "Open to anyone."
    if isinstance(who, KindConsumers):
        return f"For consumers of the kind with the scope {who.scope}, and ADMIN."
    if who == frozenset(Role):
        return "For everybody who is signed in."
    return f"For {', '.join(role.value for role in Role if role in who)}."


def _parameters(route: Route) -> list[Json]:
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": _renamed(adapter.json_schema())}
        for name, (_, adapter) in route.path_parameters.items()
    ]
    if route.query is not None:
        schema = route.query.model_json_schema(by_alias=True)
        for name, field in schema["properties"].items():
            inlined = _inlined(field, schema.get("$defs", {}))
            required = name in schema.get("required", ())
            parameters.append({"name": name, "in": "query", "required": required, "schema": inlined})
    for header in route.request_headers:
        # Servers and clients trim header values, so the pattern requires visible characters at both ends.
        form = {"type": "string", "minLength": 1, "maxLength": header.max_length, "pattern": r"^[!-~]([ -~]*[!-~])?$"}
        parameters.append(
            {"name": header.name, "in": "header", "required": False, "schema": form, "description": header.description}
        )
    return parameters


def _inlined(field: Json, definitions: Json) -> Json:
    """The schema of a query parameter, which cannot be `null`."""
    for choice in field.get("anyOf", ()):
        if choice.get("type") != "null":
            field = {**{key: value for key, value in field.items() if key not in ("anyOf", "default")}, **choice}
    if "$ref" in field:
        field = {**field, **definitions[field["$ref"].rpartition("/")[2]]}
        del field["$ref"]
    return _renamed(field)


def _responses(route: Route, refs: Refs) -> Json:
    responses: Json = {}
    for status, model in route.answers.items():
        responses[str(status)] = {"description": _ANSWERS.get(status, "Done.")}
        if model is not None:
            schema = _renamed(refs[model, "serialization"])
            media_type = route.content_type.partition(";")[0]
            if media_type == EVENT_STREAM:
                responses[str(status)]["content"] = {media_type: {"schema": _one_of_a_stream(schema)}}
            else:
                responses[str(status)]["content"] = {route.content_type: {"schema": schema}}
        elif status not in (204, 304):
            media_type = route.content_type.partition(";")[0]
            responses[str(status)]["content"] = {media_type: {"schema": {}}}
        if status == 201:
            responses["201"]["headers"] = {"Location": {"schema": {"type": "string"}}}
    codes: dict[int, list[str]] = {}
    for error in errors_of(route):
        codes.setdefault(status_of(error), []).append(error.code)
    for status, names in sorted(codes.items()):
        response = responses.setdefault(str(status), {"description": "", "content": {}})
        listed = ", ".join(f"`{name}`" for name in sorted(set(names)))
        response["description"] = f"{response['description']} {listed}".strip()
        response["content"][PROBLEM_JSON] = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return responses


def _one_of_a_stream(data: Json) -> Json:
    """As OpenAPI 3.2 describes Server-Sent Events."""
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "id": {"type": "string"},
            "event": {"type": "string"},
            "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
            "retry": {"type": "integer"},
        },
    }


_ANSWERS = {
    200: "OK.",
    201: "Created.",
    202: "Accepted.",
    204: "Done; the answer has no body.",
    206: "The part that was asked for.",
    304: "Not changed; the answer has no body.",
    503: "Not ready.",
}

PROBLEM_SCHEMA: Json = {
    "type": "object",
    "description": "An error in the form of RFC 9457. Rely on `code`; the texts may change.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "errors": {
            "type": "array",
            "description": "For invalid input: one item for each field.",
            "items": {
                "type": "object",
                "required": ["field", "message", "code"],
                "properties": {
                    "field": {"type": "string"},
                    "message": {"type": "string"},
                    "code": {"type": "string", "enum": [code.value for code in FieldCode]},
                },
            },
        },
    },
    "examples": [
        {
            "type": "about:blank",
            "title": "Bad Request",
            "status": 400,
            "detail": "The request has fields that are not accepted.",
            "code": "invalid_input",
            "errors": [{"field": "location.lat", "message": "should be a finite number", "code": "out_of_range"}],
        }
    ],
}
