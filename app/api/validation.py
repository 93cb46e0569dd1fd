"""Input validation. Models are strict: unknown fields, lax types and control characters are refused.

Pydantic's core parses and validates a body in one call. Values in queries and paths are text, so numbers in them are
read from plain digits; nothing else is converted.
"""

import re
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    AliasGenerator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic.alias_generators import to_camel

from app.api.errors import FieldCode, FieldError, InvalidInput, MalformedJson
from app.foundation.clock import rfc3339
from app.foundation.field_sentences import sentence
from app.foundation.pages import BIGINT_MAX
from app.users.service import DEMO_KEYS

FIRST_MOMENT, LAST_MOMENT = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

# The characters are written out, because pydantic's Rust expressions and the JSON schema share these classes.
_CONTROL = r"\x00-\x1f\x7f-\x9f"
_CONTROL_BUT_TAB_LF = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
LINE = rf"^[^{_CONTROL}]*$"
LINE_WITH_A_WORD = rf"^[^{_CONTROL}]*[^{_CONTROL}\s][^{_CONTROL}]*$"
TEXT = rf"^[^{_CONTROL_BUT_TAB_LF}]*$"
_CONTROL_BUT_TAB_LF_CR = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
TEXT_WITH_A_WORD = rf"^[^{_CONTROL_BUT_TAB_LF_CR}]*[^{_CONTROL_BUT_TAB_LF_CR}\s][^{_CONTROL_BUT_TAB_LF_CR}]*$"
VISIBLE_ASCII = r"^[\x21-\x7e]+$"
PHONE = r"^\+?[0-9](?:[ ()-]{0,2}[0-9]){6,14}$"


class Request(BaseModel):
    """A body or a query string."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        alias_generator=to_camel,
        hide_input_in_errors=True,
    )


class Response(BaseModel):
    """An output model, filled from the attributes of a feature's values."""

    model_config = ConfigDict(from_attributes=True, alias_generator=AliasGenerator(serialization_alias=to_camel))


class Nothing(Request):
    """The body of a call without fields: empty or `{}`."""


def normal_form(value: str) -> str:
    # "ş" can be one code point or two. One form keeps lengths and comparisons correct.
    return unicodedata.normalize("NFC", value)


def _plain_digits(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"[0-9]{1,19}", value) is None:
        raise ValueError("must be a whole number")
    return int(value)


def _plain_boolean(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in ("true", "false"):
        raise ValueError("must be true or false")
    return value == "true"


def whole(value: Any) -> Any:
    # JSON has one number type, so 5.0 is a whole number.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _only_digits_and_plus(value: str) -> str:
    return re.sub(r"[^0-9+]", "", value)


def _not_of_the_demo(value: str) -> str:
    """Anybody may sign in as a demo person, so no call can make one of somebody else."""
    if value.startswith(DEMO_KEYS):
        raise ValueError(f"must not begin with {DEMO_KEYS}")
    return value


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _moment(value: datetime) -> datetime:
    """Clamps times that a time zone moves beyond the first or the last year of the calendar."""
    try:
        return _utc(value)
    except OverflowError:
        return FIRST_MOMENT if value.year == FIRST_MOMENT.year else LAST_MOMENT


_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)(?:(Z)|([ +-])(\d\d:\d\d))?", re.ASCII)


def _service_moment(value: Any) -> Any:
    found = _DATE_TIME.fullmatch(value) if isinstance(value, str) else None
    try:
        if found is None:
            raise ValueError
        date, time, z, sign, offset = found.groups()
        moment = datetime.fromisoformat(f"{date}T{time}{z or ''}{'+' if sign == ' ' else sign or ''}{offset or ''}")
    except ValueError:
        raise ValueError("must be a time such as 2026-02-19T10:00:00") from None
    return moment if moment.tzinfo is None else _moment(moment)


def _plain_newlines(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\r", "\n")


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=LINE_WITH_A_WORD),
    AfterValidator(normal_form),
    Field(examples=["Ayşe Yılmaz"]),
]
SearchText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=LINE_WITH_A_WORD),
    Field(
        description="Beginnings of names, digits of a phone number, or an id. Letters are folded: `isil` finds Işıl.",
        examples=["isil"],
    ),
]
Note = Annotated[str, StringConstraints(max_length=500, pattern=TEXT), AfterValidator(normal_form)]
Phone = Annotated[
    str,
    StringConstraints(max_length=32, pattern=PHONE),
    AfterValidator(_only_digits_and_plus),
    Field(examples=["+90 555 010 20 30"]),
]
Identifier = Annotated[int, Field(ge=1, le=BIGINT_MAX), BeforeValidator(whole)]
PathIdentifier = Annotated[int, Field(ge=1, le=BIGINT_MAX), BeforeValidator(_plain_digits)]
QueryFlag = Annotated[bool, BeforeValidator(_plain_boolean)]
PageNumber = Annotated[int, Field(ge=1, le=BIGINT_MAX), BeforeValidator(_plain_digits)]
LargePageSize = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_plain_digits)]
SmallPageSize = Annotated[int, Field(ge=1, le=50), BeforeValidator(_plain_digits)]
PageSize = Annotated[int, Field(ge=1, le=100), BeforeValidator(_plain_digits)]
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.~:=-]+$")]
DeviceId = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=VISIBLE_ASCII)]
DeviceToken = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=VISIBLE_ASCII)]
FirebaseUid = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=VISIBLE_ASCII), AfterValidator(_not_of_the_demo)
]
Instant = Annotated[
    datetime,
    AfterValidator(_utc),
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
    Field(json_schema_extra={"format": "date-time"}),
]


Moment = Annotated[AwareDatetime, AfterValidator(_moment)]
ServiceMoment = Annotated[
    datetime,
    BeforeValidator(_service_moment),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-02-19T10:00:00"]}),
]
"""With an offset, or without one for service time. A blank may stand for the T, and for the + of an offset, which a URL
turns into a blank."""
Address = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=LINE_WITH_A_WORD)]
Subject = Annotated[str, StringConstraints(max_length=255, pattern=LINE), AfterValidator(normal_form)]
MessageText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=32_768, pattern=TEXT_WITH_A_WORD),
    AfterValidator(_plain_newlines),
    AfterValidator(normal_form),
]
T = TypeVar("T")
IfReadable = Annotated[T | None, WrapValidator(_or_none)]
"""None instead of an error for an invalid value."""


class Point(Request):
    lat: Annotated[float, Field(ge=-90, le=90, examples=[40.9901])]
    lon: Annotated[float, Field(ge=-180, le=180, examples=[29.0254])]


M = TypeVar("M", bound=BaseModel)


def read_body(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise _explain(error) from None


def read_query(model: type[M], parameters: dict[str, str]) -> M:
    try:
        return model.model_validate_strings(parameters)
    except ValidationError as error:
        raise _explain(error) from None


def read_path_parameter(field: str, adapter: TypeAdapter[Any], text: str) -> Any:
    try:
        return adapter.validate_strings(text, strict=True)
    except ValidationError as error:
        items = error.errors(include_url=False, include_input=False)
        raise InvalidInput([field_error(field, item) for item in items]) from None


def _explain(error: ValidationError) -> InvalidInput | MalformedJson:
    items = error.errors(include_url=False, include_input=False)
    if items[0]["type"] == "json_invalid":
        return MalformedJson(_place(str(items[0]["msg"])))
    return InvalidInput([field_error(_name(item["loc"]), item) for item in items[:50]])


def _place(message: str) -> str:
    """Of the parser's message only the place is kept: the rest may quote the body."""
    found = re.search(r"line ([0-9]+) column ([0-9]+)$", message)
    return f"cannot be read at line {found[1]}, column {found[2]}" if found else "cannot be read"


def _name(location: tuple[int | str, ...]) -> str:
    """For example `location.lat`. The name of an unknown field is repeated only if it looks like a name, because the
    caller may send any text."""
    names = [str(name) for name in location]
    if any(re.fullmatch(r"[A-Za-z0-9_]{1,64}", name) is None for name in names):
        return "(unknown)"
    return ".".join(names) or "body"


def field_error(field: str, item: Any) -> FieldError:
    return FieldError(field, sentence(item), field_code(str(item["type"])))


def field_code(kind: str) -> FieldCode:
    return _FIELD_CODES.get(kind, FieldCode.INVALID)


_FIELD_CODES = {
    "missing": FieldCode.REQUIRED,
    "extra_forbidden": FieldCode.UNKNOWN_FIELD,
    "string_too_long": FieldCode.TOO_LONG,
    "string_too_short": FieldCode.TOO_SHORT,
    "greater_than_equal": FieldCode.OUT_OF_RANGE,
    "less_than_equal": FieldCode.OUT_OF_RANGE,
    "finite_number": FieldCode.OUT_OF_RANGE,
    "int_parsing_size": FieldCode.OUT_OF_RANGE,
    "string_pattern_mismatch": FieldCode.WRONG_FORM,
    "uuid_parsing": FieldCode.WRONG_FORM,
    "uuid_type": FieldCode.WRONG_TYPE,
    "string_type": FieldCode.WRONG_TYPE,
    "int_type": FieldCode.WRONG_TYPE,
    "int_from_float": FieldCode.WRONG_TYPE,
    "float_type": FieldCode.WRONG_TYPE,
    "bool_type": FieldCode.WRONG_TYPE,
    "model_type": FieldCode.WRONG_TYPE,
    "enum": FieldCode.NOT_A_CHOICE,
    "literal_error": FieldCode.NOT_A_CHOICE,
}
