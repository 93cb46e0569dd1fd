"""Structured logs: a static event name and ids. Code must not log personal data; data logged by mistake is masked."""

import logging
import re
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

import structlog

PERSONAL_KEYS = frozenset(
    {"name", "phone", "token", "note", "location", "lat", "lon", "body", "subject", "title", "authorization", "email"}
)
_PHONE = re.compile(r"\+?\d[\d ()-]{8,}\d")
_URL_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")
_BEARER = re.compile(r"(?i)bearer\s+\S+")
_COORDINATES = re.compile(r"-?\d{1,3}\.\d{4,}")


# PostgreSQL quotes whole rows in these parts of an error.
_DATABASE_DETAIL = re.compile(r"(?:DETAIL|CONTEXT):.*?(?=\n\nThe above exception|\n\nDuring handling|\Z)", re.DOTALL)


def mask_database_detail(value: str) -> str:
    return _DATABASE_DETAIL.sub("DETAIL: ***", value)


def mask_text(value: str) -> str:
    value = mask_database_detail(value)
    value = _URL_PASSWORD.sub("***@", value)
    value = _BEARER.sub("Bearer ***", value)
    value = _COORDINATES.sub("***", value)
    return _PHONE.sub("***", value)


def mask_personal_data(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if key in PERSONAL_KEYS:
            event[key] = "***"
        elif isinstance(value, str) and key in {"error", "exception", "detail"}:
            event[key] = mask_text(value)
    return event


def configure_logs(level: str, as_json: bool) -> None:
    renderer: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if as_json
        else structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], drop_missing=True)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            mask_personal_data,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level)),
        # One write for each line, so that lines of two processes do not mix.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def describe_error(error: Exception) -> dict[str, str]:
    """The type and the place of an unexpected error, without its text. The text may quote data that was being sent or
    stored, such as a phone's token or the text of a notification."""
    return {"error_type": type(error).__name__, "place": "".join(traceback.format_tb(error.__traceback__))}
