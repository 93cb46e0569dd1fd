"""The root of every error that this application raises on purpose. An error carries data as attributes and a stable
`code` that phones and operators may rely on. Only `app/api/errors.py` decides its HTTP status.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class AppError(Exception):
    code: ClassVar[str] = "error"

    def __init__(self, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extra = extra
        """Additional members of the error's JSON."""


class NotFound(AppError):
    code = "not_found"


class Forbidden(AppError):
    code = "forbidden"


class Conflict(AppError):
    code = "conflict"


class IdempotencyKeyReused(Conflict):
    """The same Idempotency-Key came with a different request."""

    code = "idempotency_key_reused"


class Gone(AppError):
    """It was there, and is not kept any more."""

    code = "gone"


class InvalidValue(AppError):
    """A value of the right form that is not acceptable now."""

    code = "invalid_value"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field

    @property
    def problems(self) -> Mapping[str, str]:
        """The problems by field."""
        return {self.field: self.message}


class InvalidValues(InvalidValue):
    """Several invalid values, reported together so that the caller can correct all of them at once."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(*next(iter(problems.items())))
        self._problems = problems

    @property
    def problems(self) -> Mapping[str, str]:
        return self._problems


class TooManyRequests(AppError):
    code = "too_many_requests"

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(AppError):
    """A store we depend on does not answer; the same call may work in a moment."""

    code = "unavailable"
    retry_after_s = 2
