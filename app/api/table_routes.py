"""The five calls of a table that operators edit: list, create, show, change, retire."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from pydantic import BaseModel
from sqlalchemy import Connection

from app.api.access import ADMIN, COORDINATORS, Who
from app.api.routing import Call, Reply, Routes, View, snake
from app.api.schemas import PageJson
from app.api.schemas_v1 import RowsQuery, TableRowJson
from app.api.validation import PathIdentifier
from app.db.tables import EVERY_ROW, EditableTable, Rules, Seen, TableRow, Values
from app.foundation.errors import AppError, InvalidValue, NotFound
from app.foundation.pages import Page
from app.settings.settings import Settings
from app.users.contract import StaffScope


def every_row(_scope: StaffScope) -> Seen:
    """For tables that all coordinators read."""
    return EVERY_ROW


def no_further_check(_conn: Connection, _scope: StaffScope, _current: TableRow | None, _values: Values) -> None:
    """For tables that only administrators change."""


@dataclass(frozen=True)
class Resource(Generic[Rules]):
    table: EditableTable[Rules]
    rules: Callable[[Settings], Rules]
    """Takes from the settings what the checks of the table use."""
    path: str
    id_name: str
    """The name of the id in the path."""
    one: str
    """The noun for one row in descriptions, for example `recipient profile`."""
    shown: type[TableRowJson]
    new: type[BaseModel]
    changes: type[BaseModel]
    query: type[RowsQuery]
    seen: Callable[[StaffScope], Seen]
    changed_by: Who = ADMIN
    check_change: Callable[[Connection, StaffScope, TableRow | None, Values], None] = no_further_check
    """Checks that the caller may change this row, or create one with these values."""
    write_errors: tuple[type[AppError], ...] = ()
    """Errors of creating and changing a row."""
    change_errors: tuple[type[AppError], ...] = ()
    """Errors of changing a row only."""
    retire_errors: tuple[type[AppError], ...] = ()
    shown_new: type[TableRowJson] | None = None
    """The model of the answer to a creation, if it shows more fields."""

    def open(self, conn: Connection, call: Call, id_: int, values: Values) -> None:
        """Checks that the caller may change the row, and locks it."""
        self.check_change(conn, call.scope, self.table.get(conn, id_, seen=self.seen(call.scope), lock=True), values)

    def rules_for(self, call: Call) -> Rules:
        return self.rules(call.services.settings)

    @property
    def page(self) -> type[PageJson[Any]]:
        return PageJson[self.shown]

    @property
    def one_path(self) -> str:
        return f"{self.path}/{{{self.id_name}}}"


def given(body: BaseModel) -> dict[str, Any]:
    """The fields that the caller sent, as plain values."""
    return body.model_dump(mode="json", include=body.model_fields_set)


def shown_page(resource: Resource[Any], page: Page[TableRow]) -> PageJson[Any]:
    return resource.page(
        items=[resource.shown.model_validate(item) for item in page.items], next_cursor=page.next_cursor
    )


def created(resource: Resource[Any], row: TableRow, path: str | None = None) -> Reply:
    model = resource.shown_new or resource.shown
    return Reply(model.model_validate(row), headers={"Location": f"{path or resource.path}/{row.id}"})


def add_table_routes(routes: Routes, resource: Resource[Any]) -> None:
    """Creates the views. Their names and descriptions are made from the noun for one row."""
    _add_collection(routes, resource)
    _add_single(routes, resource)


def _add_collection(routes: Routes, resource: Resource[Any]) -> None:
    table = resource.table

    def list_all(call: Call, query: RowsQuery) -> PageJson[Any]:
        filters = query.model_dump(exclude={"limit", "cursor", "include_retired"}, exclude_none=True)
        with call.services.db.reading() as conn:
            page = table.list(
                conn,
                filters,
                seen=resource.seen(call.scope),
                cursor=query.cursor,
                limit=query.limit,
                include_retired=query.include_retired,
            )
        return shown_page(resource, page)

    def create(call: Call, body: BaseModel) -> Reply:
        with call.services.db.transaction() as conn:
            values = given(body)
            resource.check_change(conn, call.scope, None, values)
            return created(resource, table.create(conn, values, resource.rules_for(call)))

    _name(list_all, "list", "List", f"{resource.one}s", "Newest first; retired ones only with `includeRetired=true`.")
    _name(create, "create", "Create", resource.one)
    list_all.__annotations__["query"] = resource.query
    create.__annotations__["body"] = resource.new
    routes.add("GET", resource.path, who=COORDINATORS, answers={200: resource.page}, errors=(InvalidValue,))(list_all)
    answer = resource.shown_new or resource.shown
    errors = (InvalidValue, *resource.write_errors)
    routes.add("POST", resource.path, who=resource.changed_by, answers={201: answer}, errors=errors)(create)


def _add_single(routes: Routes, resource: Resource[Any]) -> None:
    table = resource.table
    name = snake(resource.id_name)

    def show(call: Call, **ids: int) -> BaseModel:
        with call.services.db.reading() as conn:
            return resource.shown.model_validate(table.show(conn, ids[name], seen=resource.seen(call.scope)))

    def change(call: Call, body: BaseModel, **ids: int) -> BaseModel:
        with call.services.db.transaction() as conn:
            values = given(body)
            resource.open(conn, call, ids[name], values)
            return resource.shown.model_validate(table.edit(conn, ids[name], values, resource.rules_for(call)))

    def retire(call: Call, **ids: int) -> None:
        with call.services.db.transaction() as conn:
            resource.open(conn, call, ids[name], {})
            table.retire(conn, ids[name])

    _name(show, "get", "Show", resource.one, "A retired one, too; `retiredAt` is null while it is in use.")
    _name(change, "change", "Change", resource.one, "Absent fields stay as they are.")
    _name(retire, "retire", "Retire", resource.one, "It is not used any more, but stays readable by its id.")
    change.__annotations__["body"] = resource.changes
    operations: tuple[tuple[str, View, type[BaseModel] | None, tuple[type[AppError], ...]], ...] = (
        ("GET", show, resource.shown, ()),
        ("PATCH", change, resource.shown, (InvalidValue, *resource.write_errors, *resource.change_errors)),
        ("DELETE", retire, None, resource.retire_errors),
    )
    for method, view, answer, errors in operations:
        view.__annotations__[name] = PathIdentifier
        status = 204 if answer is None else 200
        who = COORDINATORS if method == "GET" else resource.changed_by
        routes.add(method, resource.one_path, who=who, answers={status: answer}, errors=(NotFound, *errors))(view)


def _name(view: View, name: str, verb: str, noun: str, more: str = "") -> None:
    view.__name__ = f"{name}_{noun.replace(' ', '_')}"
    article = "" if noun.endswith("s") else "an " if noun[0] in "aeiou" else "a "
    view.__doc__ = f"{verb} {article}{noun}.\n\n{more}".strip()
