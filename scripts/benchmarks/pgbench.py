"""Replays with pgbench what the application sent: the same statements and values in the same order."""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.bench import Bench, Connection, run
from benchmarks.capture import COMMIT, SentStatement
from benchmarks.client import Answered

PLACEHOLDER = re.compile(r"%\((\w+)\)s")
NOT_COUNTED = 3
CASTS: dict[type, str] = {
    bool: "boolean",
    int: "bigint",
    float: "float8",
    UUID: "uuid",
    datetime: "timestamptz",
    timedelta: "interval",
}


@dataclass(frozen=True)
class Script:
    """The statements of one request, with variables in place of values. A table holds the values of each request."""

    name: str
    statements: Sequence[str]
    columns: Sequence[str]
    requests: int


def write_script(
    bench: Bench, conn: Connection, name: str, captured: Sequence[Sequence[SentStatement]], wanted: int
) -> Script:
    """Writes the values to a table. The script reads them from it with one additional statement."""
    requests = _of_one_kind(captured)[:wanted]
    if len(requests) < wanted:
        raise AssertionError(f"the application sends too many different statements for {name}")
    statements: list[str] = []
    columns: dict[str, list[Any]] = {}
    in_transaction = False
    for place, first in enumerate(requests[0]):
        if first.statement == COMMIT:
            statements.append(COMMIT)
            in_transaction = False
            continue
        if not first.autocommitted and not in_transaction:
            statements.append("BEGIN")
        in_transaction = not first.autocommitted
        statements.append(_with_variables(first.statement, place, requests, columns))
    _write_values(conn, name, columns, len(requests))
    script = Script(name, statements, list(columns), len(requests))
    _file(bench, name).write_text(_text(script))
    return script


def write_values_and_text(
    bench: Bench, conn: Connection, name: str, statements: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> Script:
    """A script whose statements have variables already. Those that end with a command of pgbench stay as they are."""
    columns = {column: [row[column] for row in rows] for column in rows[0]}
    _write_values(conn, name, columns, len(rows))
    script = Script(name, [one.removesuffix(";") for one in statements], list(columns), len(rows))
    _file(bench, name).write_text(_text(script))
    return script


def _of_one_kind(captured: Sequence[Sequence[SentStatement]]) -> list[Sequence[SentStatement]]:
    """The requests with the most common statements. A few need others, such as a second read of the list; pgbench skips
    those."""
    kinds = [tuple((one.statement, one.autocommitted) for one in sent) for sent in captured]
    usual = Counter(kinds).most_common(1)[0][0]
    return [sent for kind, sent in zip(kinds, captured, strict=True) if kind == usual]


def _with_variables(
    statement: str, place: int, requests: Sequence[Sequence[SentStatement]], columns: dict[str, Any]
) -> str:
    def variable(match: re.Match[str]) -> str:
        values = [sent[place].values[match[1]] for sent in requests]
        if all(value is None for value in values):
            return "NULL"
        column = f"v{place}_{match[1]}".lower()
        columns[column] = values
        return f":{column}{_cast(values)}"

    return PLACEHOLDER.sub(variable, statement).replace("%%", "%").strip().rstrip(";")


def _cast(values: Sequence[Any]) -> str:
    """The driver sends the type of each value; pgbench sends text, which needs a cast."""
    for value in values:
        if isinstance(value, list):
            inner = _cast(value)
            return f"{inner}[]" if inner else ""
        for kind, name in CASTS.items():
            if isinstance(value, kind):
                return f"::{name}"
    return ""


def _write_values(conn: Connection, name: str, columns: dict[str, list[Any]], rows: int) -> None:
    run(conn, f"CREATE TABLE {name}_values (n int PRIMARY KEY, {', '.join(f'{one} text' for one in columns)})")
    with conn.cursor() as cursor, cursor.copy(f"COPY {name}_values FROM STDIN") as copy:  # pyright: ignore
        for n in range(rows):
            copy.write_row([n, *(_as_text(values[n]) for values in columns.values())])
    run(conn, f"VACUUM ANALYZE {name}_values")


def _as_text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        return "{" + ",".join(str(_as_text(item)) for item in value) + "}"
    if isinstance(value, timedelta):
        return f"{value.total_seconds()} seconds"
    return str(value)


def _text(script: Script) -> str:
    wanted = ", ".join(script.columns)
    reading = f"SELECT {wanted} FROM {script.name}_values WHERE n = :row::int \\gset"
    counting = ["\\set turn :turn + 1", "\\set row :turn * :clients + :client_id"]
    return "\n".join([*counting, reading, *map(_ended, script.statements), ""])


def _ended(statement: str) -> str:
    return statement if "\\" in statement else f"{statement};"


def _file(bench: Bench, name: str) -> Path:
    return bench.folder / f"{name}.sql"


def play(bench: Bench, database: str, script: Script, *, first: int, requests: int, clients: int) -> Answered:
    """Replays `requests` requests from number `first` on, shared among the clients."""
    log = bench.folder / f"{script.name}-{first}"
    command = [bench.pgbench, "--no-vacuum", "--protocol=prepared", f"--client={clients}", "--jobs=1"]
    command += [f"--transactions={requests // clients}", f"--define=turn={first // clients - 1}"]
    command += [f"--define=clients={clients}", f"--file={_file(bench, script.name)}", "--log", f"--log-prefix={log}"]
    command.append(bench.url(database))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or "ERROR" in done.stderr:
        raise RuntimeError(f"pgbench failed:\n{done.stderr[-3000:]}")
    logs = list(bench.folder.glob(f"{log.name}.*"))
    played = [line.split() for file in logs for line in file.read_text().splitlines()]
    # The first requests of each client prepare its statements, which the application has done before.
    latencies = [int(fields[2]) / 1e3 for fields in played if int(fields[1]) > NOT_COUNTED]
    for file in logs:
        file.unlink()
    return Answered(sum(latencies) / clients / 1e3, latencies)


def rate(bench: Bench, database: str, statements: str, *, times: int, clients: int) -> float:
    """How many times a second the clients together do this, which has no values."""
    file = bench.folder / "repeated.sql"
    file.write_text(statements)
    command = [bench.pgbench, "--no-vacuum", "--protocol=prepared", f"--client={clients}", "--jobs=1"]
    command += [f"--transactions={times // clients}", f"--file={file}", bench.url(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(re.findall(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)[0])
