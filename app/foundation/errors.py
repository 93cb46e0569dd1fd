"""The root of every error this application raises on purpose.

An error carries data as attributes and a stable `code` that phones and operators may rely on. What HTTP
status it becomes is decided in `app/api/errors.py` and nowhere else.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class AppError(Exception):
    code: ClassVar[str] = "error"

    def __init__(self, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extra = extra
        """Published with the error as further members of its JSON."""


class NotFound(AppError):
    code = "not_found"


class Forbidden(AppError):
    code = "forbidden"


class Conflict(AppError):
    code = "conflict"


class IdempotencyKeyReused(Conflict):
    """The same Idempotency-Key came with a different request."""

    code = "idempotency_key_reused"


class InvalidValue(AppError):
    """A value that has the right shape, but that the state of the world forbids."""

    code = "invalid_value"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field

    @property
    def problems(self) -> Mapping[str, str]:
        """What is wrong, by the field it is wrong with."""
        return {self.field: self.message}


class InvalidValues(InvalidValue):
    """The same of several values at once, so that nobody has to mend a request one field at a time."""

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
