"""The rival of `ceiling` and `http`: the server of the api role around bare Flask routes, which press and accept by
psycopg.

python -m benchmarks.bare_presses

The SQL is the least of a press and of an accept. The routes believe the token without a look at its signature, answer
with the id of the task, and neither count nor log.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any, LiteralString, cast
from uuid import UUID

import psycopg
from flask import Flask, request
from psycopg.rows import dict_row

from app.settings.settings import Settings
from benchmarks import least_sql
from benchmarks.bare_api import app_with_pool, serve
from benchmarks.least_sql import VARIABLE

VALUES = "SELECT * FROM least_press_values WHERE elder_id = %(elder)s"
Connection = psycopg.Connection[dict[str, Any]]
COMMANDS = ("BEGIN", "COMMIT", "\\startpipeline", "\\endpipeline")


def for_psycopg(script: str) -> list[str]:
    """The statements between BEGIN and COMMIT of a script of pgbench. Pipelines are left out: with psycopg they take
    more processor time than they save."""
    statements = [part.removesuffix("\\gset").strip().removesuffix(";") for part in least_sql.parts(script)]
    return [VARIABLE.sub(r"%(\1)s", one.replace("%", "%%")) for one in statements if one not in COMMANDS]


def play(conn: Connection, statements: Sequence[str], values: dict[str, Any]) -> None:
    """Each statement may use what the ones before have answered."""
    with conn.transaction():
        for statement in statements:
            row = conn.execute(cast(LiteralString, statement), values).fetchone()
            values |= row or {}


def press(conn: Connection, statements: Sequence[str], elder: str) -> UUID:
    values: Any = conn.execute(VALUES, {"elder": elder}).fetchone()
    values |= least_sql.ids()
    play(conn, statements, values)
    return values["task_id"]


def accept(conn: Connection, statements: Sequence[str], student: str, task_id: UUID) -> None:
    people = {"student_id": int(student), "task_id": task_id}
    play(conn, statements, least_sql.accept_words(int(student)) | least_sql.ids() | people)


def bare_app(settings: Settings, _metrics_directory: str) -> Flask:
    app, pool = app_with_pool(settings, prepare_threshold=0, row_factory=dict_row)
    to_press, to_accept = for_psycopg(least_sql.press_script()), for_psycopg(least_sql.ACCEPT)

    def caller() -> str:
        claims = request.headers["Authorization"].split(".")[1]
        return json.loads(base64.urlsafe_b64decode(claims + "=="))["sub"]

    @app.post("/tasks")
    def press_button() -> Any:
        with pool.connection() as conn:
            return {"id": str(press(cast(Connection, conn), to_press, caller()))}, 201

    @app.put("/tasks/<uuid:task_id>/accept")
    def accept_task(task_id: UUID) -> Any:
        with pool.connection() as conn:
            accept(cast(Connection, conn), to_accept, caller(), task_id)
        return {"id": str(task_id)}

    return app


if __name__ == "__main__":
    serve(bare_app)
