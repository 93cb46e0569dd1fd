"""Routes as values. A route declares who may call it; the annotations of its view declare input and output.

A view is a plain function. It takes `call`, the parameters of the path by name, and `body` and `query` if it has them.
Their parsers are built once, when the route is registered.
"""

import inspect
import re
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from pydantic import BaseModel, TypeAdapter
from werkzeug.datastructures import Headers

from app.api import validation
from app.api.access import Who
from app.api.file_download import FileDownload
from app.api.services import Services
from app.api.site import Site
from app.foundation.errors import AppError
from app.users.contract import StaffScope, scope_of
from app.users.models import Caller


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as a view gets it."""

    site: Site
    signed_in: Caller | None
    headers: Headers

    @property
    def services(self) -> Services:
        return self.site.services

    @property
    def caller(self) -> Caller:
        assert self.signed_in is not None, "only users are callers: nobody is one on an open route, and no consumer is"
        return self.signed_in

    @property
    def scope(self) -> StaffScope:
        """What the caller, a coordinator or an admin, sees and steers."""
        return scope_of(self.caller)


@dataclass(frozen=True, slots=True)
class Reply:
    """A view's answer with a status or headers of its own."""

    body: BaseModel | FileDownload | AsyncIterable[bytes] | str | bytes | None
    """An asynchronous iterable is sent by the event loop, for as long as it lasts."""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Answer = BaseModel | Reply | None
View = Callable[..., Answer]
FindMoreProblems = Callable[[Call, bytes], Mapping[str, str]]
"""Returns problems by field that the model alone cannot find. It runs only on bodies that the model has refused, so
that the answer names all problems at once."""


# `{name}` is one segment of the path, and `{path:name}` is its whole rest.
_PARAMETER = re.compile(r"\{(path:)?(\w+)\}")


@dataclass(frozen=True)
class Header:
    """A request header that a view reads, described for the documentation."""

    name: str
    description: str
    max_length: int


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    who: Who
    view: View
    tag: str
    answers: Mapping[int, type[BaseModel] | None]
    """Models of the successful answers by status; None is an answer without a body. The first is the default."""
    content_type: str
    errors: tuple[type[AppError], ...]
    request_headers: tuple[Header, ...]
    path_parameters: Mapping[str, tuple[str, TypeAdapter[Any]]]
    """Parameter in the path → name of the view's argument, and its parser."""
    body: type[BaseModel] | None
    query: type[BaseModel] | None
    takes_file: bool
    """Its body is a file of any size, which the view reads in pieces."""
    find_more_problems: FindMoreProblems | None = None
    is_witnessed: bool = True
    """What a coordinator or admin changes by it is written to the audit trail. Their transactions commit one after the
    other, so routes that other services call all the time, and that change nobody's rows, are left out."""

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def summary(self) -> str:
        return self._doc[0]

    @property
    def description(self) -> str:
        return self._doc[1]

    @property
    def _doc(self) -> tuple[str, str]:
        first, _, rest = (inspect.getdoc(self.view) or self.name).partition("\n")
        return first.rstrip("."), re.sub(r"(?<!\n)\n(?!\n)", " ", rest.strip())

    @property
    def rule(self) -> str:
        """The path in Werkzeug's notation."""
        return _PARAMETER.sub(r"<\1\2>", self.path)

    @property
    def default_status(self) -> int:
        return next(iter(self.answers))


class Routes:
    """The routes of one module of views."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.all: list[Route] = []

    def add(
        self,
        method: str,
        path: str,
        *,
        who: Who,
        answers: Mapping[int, type[BaseModel] | None],
        errors: tuple[type[AppError], ...] = (),
        headers: tuple[Header, ...] = (),
        content_type: str = "application/json",
        find_more_problems: FindMoreProblems | None = None,
        is_witnessed: bool = True,
    ) -> Callable[[View], View]:
        def register(view: View) -> View:
            hints = get_type_hints(view, include_extras=True)
            names = [found[2] for found in _PARAMETER.finditer(path)]
            parameters = {name: (snake(name), TypeAdapter(hints[snake(name)])) for name in names}
            # A call that changes data, but has no model for a body, still refuses a body with fields.
            refuses = method in ("POST", "PUT", "PATCH") and "upload" not in hints
            body = hints.get("body", validation.Nothing if refuses else None)
            self.all.append(
                Route(
                    method,
                    path,
                    who,
                    view,
                    self.tag,
                    answers,
                    content_type,
                    errors,
                    headers,
                    parameters,
                    body,
                    hints.get("query"),
                    "upload" in hints,
                    find_more_problems,
                    is_witnessed and method != "GET",
                )
            )
            return view

        return register


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
