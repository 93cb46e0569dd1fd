"""Says in our own words what is wrong with a field. Pydantic's sentences would change with its versions, and speak of
Python to somebody who sent JSON.
"""

import re
from collections.abc import Mapping
from typing import Any

_ITS_OWN = frozenset({"value_error", "assertion_error"})
"""The sentence is that of the check that refused the value."""

_TIME = "must be a time with an offset, such as 2026-03-12T20:55:00Z"
_WHOLE = "must be a whole number"
_TRUE_OR_FALSE = "must be true or false"
_SENTENCES = {
    "missing": "is required",
    "extra_forbidden": "is not known here",
    "string_type": "must be text",
    "string_sub_type": "must be text",
    "string_unicode": "must be text in UTF-8",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": (
        "holds characters that are not allowed here, or does not have the form that is asked for"
    ),
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "is a larger number than can be stored",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "multiple_of": "must be a multiple of {multiple_of}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "bool_type": _TRUE_OR_FALSE,
    "bool_parsing": _TRUE_OR_FALSE,
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dataclass_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "none_required": "must be null",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "uuid_type": "must be a UUID",
    "uuid_parsing": "must be a UUID",
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "timezone_aware": _TIME,
    "date_type": "must be a date such as 2026-03-12",
    "date_parsing": "must be a date such as 2026-03-12",
    "date_from_datetime_parsing": "must be a date such as 2026-03-12",
    "date_from_datetime_inexact": "must be a date such as 2026-03-12",
    "json_type": "must be JSON",
}
_OTHERWISE = "does not have the form that is asked for"


def sentence(problem: Mapping[str, Any]) -> str:
    """`problem` is one of the items of pydantic's `ValidationError.errors()`."""
    kind = str(problem["type"])
    if kind in _ITS_OWN:
        return re.sub("^(Value error|Assertion failed), ", "", str(problem["msg"]))
    given: Mapping[str, Any] = problem.get("ctx") or {}
    context = {name: _shown(value) for name, value in given.items()}
    if kind == "string_too_short" and context.get("min_length") == "1":
        return "must not be empty"
    return _SENTENCES.get(kind, _OTHERWISE).format_map(context)


def _shown(value: Any) -> str:
    """A list of choices comes in quotes."""
    return str(value).replace("'", "")
