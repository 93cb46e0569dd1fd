"""Errors as RFC 9457 problems. Only this module maps errors to HTTP statuses."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import structlog
from pydantic.alias_generators import to_camel
from pydantic_core import to_json
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestedRangeNotSatisfiable
from werkzeug.wrappers import Response

from app.foundation.errors import (
    AppError,
    Conflict,
    Forbidden,
    Gone,
    InvalidValue,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from app.foundation.faults import fault

log = structlog.get_logger(__name__)

PROBLEM_JSON = "application/problem+json"


class FieldCode(StrEnum):
    REQUIRED = "required"
    UNKNOWN_FIELD = "unknown_field"
    WRONG_TYPE = "wrong_type"
    WRONG_FORM = "wrong_form"
    TOO_LONG = "too_long"
    TOO_SHORT = "too_short"
    OUT_OF_RANGE = "out_of_range"
    NOT_A_CHOICE = "not_a_choice"
    GIVEN_TWICE = "given_twice"
    INVALID = "invalid"


@dataclass(frozen=True)
class FieldError:
    field: str
    message: str
    code: FieldCode


class BadRequest(AppError):
    """The request cannot be understood; `errors` names the fields."""

    code = "bad_request"

    def __init__(self, message: str, fields: list[FieldError] | None = None) -> None:
        super().__init__(message)
        self.fields = fields or []


class InvalidInput(BadRequest):
    """At least one field has a value that is not accepted."""

    code = "invalid_input"

    def __init__(self, fields: list[FieldError]) -> None:
        super().__init__("The request has fields that are not accepted.", fields)


class MalformedJson(BadRequest):
    """The body is not JSON."""

    code = "malformed_json"

    def __init__(self, message: str) -> None:
        super().__init__("The body is not JSON.", [FieldError("body", message, FieldCode.INVALID)])


class UnsupportedMediaType(BadRequest):
    """The body must be sent as `application/json`."""

    code = "unsupported_media_type"

    def __init__(self) -> None:
        message = "must be application/json"
        super().__init__(
            "The body must be sent as application/json.", [FieldError("Content-Type", message, FieldCode.INVALID)]
        )


class BodyTooLarge(BadRequest):
    """The body is larger than the service accepts."""

    code = "body_too_large"


class HeadersTooLarge(BadRequest):
    """The headers are larger than the service accepts."""

    code = "headers_too_large"


class RequestTooSlow(BadRequest):
    """The request did not come as a whole in the time that the service gives; the connection is closed."""

    code = "request_too_slow"


class RangeNotSatisfiable(BadRequest):
    """The file ends before the range that was asked for; `Content-Range` tells its length."""

    code = "range_not_satisfiable"


class Unauthenticated(AppError):
    """The call has no valid token."""

    code = "unauthenticated"
    challenge: ClassVar[str] = "Bearer"


class RouteUnknown(NotFound):
    """There is nothing at this path."""

    code = "route_unknown"


class WrongMethod(AppError):
    """The path exists, but not with this method; `Allow` lists its methods."""

    code = "method_not_allowed"


class Unexpected(AppError):
    """A fault of the service. The request id finds it in the logs."""

    code = "internal_error"


# The first matching class decides, so subclasses come before their bases.
STATUSES: tuple[tuple[type[AppError], int], ...] = (
    (UnsupportedMediaType, 415),
    (RangeNotSatisfiable, 416),
    (BodyTooLarge, 413),
    (RequestTooSlow, 408),
    (HeadersTooLarge, 431),
    (BadRequest, 400),
    (InvalidValue, 400),
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (WrongMethod, 405),
    (Conflict, 409),
    (Gone, 410),
    (TooManyRequests, 429),
    (Unavailable, 503),
    (AppError, 500),
)

TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


def status_of(error: type[AppError]) -> int:
    return next(status for kind, status in STATUSES if issubclass(error, kind))


def problem(error: AppError) -> Response:
    status = status_of(type(error))
    members: dict[str, Any] = {to_camel(key): value for key, value in error.extra.items()}
    members |= {
        "type": "about:blank",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": error.message,
        "code": error.code,
    }
    fields = _fields(error)
    if fields:
        members["errors"] = [{"field": f.field, "message": f.message, "code": f.code} for f in fields]
    response = Response(to_json(members), status, content_type=PROBLEM_JSON)
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = error.challenge
    if isinstance(error, TooManyRequests | Unavailable):
        response.headers["Retry-After"] = str(max(1, error.retry_after_s))
    return response


def _fields(error: AppError) -> list[FieldError]:
    if isinstance(error, BadRequest):
        return error.fields
    if isinstance(error, InvalidValue):
        return [FieldError(field, message, FieldCode.INVALID) for field, message in error.problems.items()]
    return []


def problem_of_http_error(error: HTTPException) -> Response:
    """Translates what Flask and Werkzeug raise: unknown paths, wrong methods, oversized or broken requests."""
    match error.code:
        case 404:
            return problem(RouteUnknown("There is nothing at this path."))
        case 405:
            response = problem(WrongMethod("This path does not take that method."))
            if isinstance(error, MethodNotAllowed) and error.valid_methods:
                response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
            return response
        case 413:
            return problem(BodyTooLarge("The body is too large.", []))
        case 416:
            response = problem(RangeNotSatisfiable("The file ends before this range."))
            if isinstance(error, RequestedRangeNotSatisfiable):
                response.headers["Content-Range"] = f"bytes */{error.length}"
            return response
        case 500 | None:
            return problem_of_fault(error)
        case _:
            return problem(BadRequest("The request cannot be understood."))


def problem_of_fault(error: BaseException) -> Response:
    log.error("request_failed", **fault(error))
    return problem(Unexpected("The service failed. The X-Request-Id of this response finds it in the logs."))
