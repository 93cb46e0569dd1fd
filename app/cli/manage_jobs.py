"""`jobs run NAME --param k=v … | list | show ID`. Results go to stdout, everything else to stderr."""

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from app.api.schemas_jobs import JobInFullJson
from app.api.validation import field_error
from app.bootstrap.job_catalogue import job_catalogue
from app.cli.command import CommandFailed, command_database, fail
from app.cli.job_progress import ProgressLines
from app.db.database import Database, DatabaseUnavailable
from app.foundation.logs import configure_logs
from app.foundation.loop import DoublingPause
from app.jobs import service as jobs
from app.jobs.contract import (
    CatalogueEntry,
    JobEnded,
    JobInFull,
    JobOrigin,
    JobRequest,
    JobStatus,
    ScriptBroken,
    ScriptFolderGone,
    ScriptUnknown,
    WrongParams,
)
from app.settings.settings import Settings

FAILED, WRONG, INTERRUPTED = 1, 2, 130
LOOK_EVERY_S = 0.1
HINT_AFTER_S = 5.0
NOT_CLAIMED = "It still waits. Is a role `jobs` running, with a free worker? `--here` runs a job without one."


def main(settings: Settings, argv: list[str]) -> int:
    parser = _parser()
    options, others = parser.parse_known_args(argv)
    if options.command == "run":
        options.param += [_param(option) for option in others if option.startswith("--")]
        others = [option for option in others if not option.startswith("--")]
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if options.command == "list":
        return _list(settings)
    try:
        with command_database(settings, "jobs") as db:
            if options.command == "show":
                return _show(db, options)
            return _run(settings, db, options)
    except CommandFailed as failure:
        return fail(str(failure))


def _param(option: str) -> str:
    """`--fix` is short for `--param fix=true`, and `--month=2026-09` for `--param month=2026-09`."""
    name, is_given, value = option.removeprefix("--").partition("=")
    return f"{name.replace('-', '_')}={value if is_given else 'true'}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jobs", description="Run scripts as jobs.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run", help="run a script; exit code 0 succeeded, 1 failed, 2 wrong parameters, 130 cancelled by Ctrl-C"
    )
    run.add_argument("name", metavar="NAME", help="see `jobs list`")
    run.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="or --NAME=VALUE; a value with [ or { is JSON",
    )
    run.add_argument("--here", action="store_true", help="run it on this machine, without the role `jobs`")
    run.add_argument("--max-retries", type=int, metavar="N", help="the script's own if absent")
    run.add_argument("--timeout-s", type=float, metavar="S", help="of one try; the script's own if absent")
    run.add_argument("--artifacts", type=Path, metavar="DIR", help="save the files that the job leaves in this folder")
    commands.add_parser("list", help="list the scripts, their parameters and defaults")
    show = commands.add_parser("show", help="print one job as JSON")
    show.add_argument("id", type=UUID, metavar="ID")
    show.add_argument("--artifacts", type=Path, metavar="DIR", help="save the files that the job left in this folder")
    return parser


def _list(settings: Settings) -> int:
    try:
        entries = job_catalogue(settings).entries()
    except ScriptFolderGone as error:
        return fail(error.message)
    for entry in entries:
        _print_entry(entry)
    return 0


def _print_entry(entry: CatalogueEntry) -> None:
    declared = entry.declaration
    if declared is None:
        print(f"{entry.name}\n    cannot be used: {entry.error}")
        return
    print(f"{entry.name}  ({declared.task_type})\n    {declared.summary}")
    required = set(declared.parameters.get("required", ()))
    properties: Mapping[str, Mapping[str, Any]] = declared.parameters.get("properties", {})
    for name, schema in properties.items():
        default = "required" if name in required else f"default {json.dumps(schema.get('default'), ensure_ascii=False)}"
        print(f"    --param {name}=…  {default}  {schema.get('description', '')}".rstrip())


def _show(db: Database, options: argparse.Namespace) -> int:
    job = _read(db, options.id)
    print(JobInFullJson.model_validate(job).model_dump_json(by_alias=True, indent=2))
    _save_artifacts(db, job, options.artifacts)
    return 0


def _read(db: Database, job_id: UUID) -> JobInFull:
    with db.reading() as conn:
        return jobs.get_job(conn, job_id)


def _save_artifacts(db: Database, job: JobInFull, folder: Path | None) -> None:
    if folder is None or not job.artifacts:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for artifact in job.artifacts:
        with db.reading() as conn:
            content = jobs.read_artifact(conn, job.id, artifact.name)
        (folder / artifact.name).write_bytes(content)
        print(f"saved {folder / artifact.name} ({artifact.size} bytes)", file=sys.stderr)


def _run(settings: Settings, db: Database, options: argparse.Namespace) -> int:
    given, problems = _split(options.param)
    if options.max_retries is not None and not 0 <= options.max_retries <= 100:
        problems.append("--max-retries must be from 0 to 100")
    if options.timeout_s is not None and not 0 < options.timeout_s <= 7 * 86_400:
        problems.append("--timeout-s must be above 0, and at most a week")
    if problems:
        return _wrong(problems)
    try:
        checked = job_catalogue(settings).check(options.name, given, are_strings=True)
    except ScriptUnknown:
        return _wrong([f"There is no script {options.name!r}. `jobs list` shows all scripts."])
    except ScriptBroken as error:
        return fail(f"The script {options.name} cannot be used. {error.message}")
    except WrongParams as error:
        return _wrong([_explain(one.field, one.message, one.kind) for one in error.problems])
    request = JobRequest(options.name, JobOrigin.CLI, max_retries=options.max_retries, timeout_s=options.timeout_s)

    def ask(conn: Connection) -> UUID:
        return jobs.request_job(conn, request, checked, settings.jobs_timeout_s).id

    if options.here:
        # The engine, which the other commands do not need.
        from app.bootstrap.jobs import running_here

        configure_logs("WARNING", settings.log_json)
        with running_here(settings) as run_here:
            return _await(db, run_here(ask), options, is_here=True)
    with db.transaction() as conn:
        job_id = ask(conn)
    return _await(db, job_id, options, is_here=False)


def _await(db: Database, job_id: UUID, options: argparse.Namespace, *, is_here: bool) -> int:
    print(f"job {job_id}", file=sys.stderr)
    try:
        _wait_until_ended(db, job_id, is_here=is_here)
        interrupted = False
    except KeyboardInterrupt:
        print("\ncancelling; Ctrl-C again leaves at once", file=sys.stderr)
        interrupted = True
        try:
            _cancel(db, job_id)
            _wait_until_ended(db, job_id, is_here=True)
        except KeyboardInterrupt:
            return INTERRUPTED
    return _report(db, _read(db, job_id), options, interrupted=interrupted)


def _cancel(db: Database, job_id: UUID) -> None:
    with contextlib.suppress(JobEnded), db.transaction() as conn:
        jobs.cancel_job(conn, job_id)


def _wait_until_ended(db: Database, job_id: UUID, *, is_here: bool) -> None:
    progress, pause = ProgressLines(), DoublingPause()
    hint_at = float("inf") if is_here else time.monotonic() + HINT_AFTER_S
    while True:
        try:
            with db.reading() as conn:
                job = jobs.watch_job(conn, job_id)
        except DatabaseUnavailable:
            print("The database does not answer; the job goes on without this command.", file=sys.stderr)
            time.sleep(pause.next_s())
            continue
        pause.reset()
        if job.has_ended:
            return progress.end(job.progress)
        progress.show(job.progress)
        if job.status is JobStatus.QUEUED and time.monotonic() >= hint_at:
            hint_at = float("inf")
            print(NOT_CLAIMED, file=sys.stderr)
        time.sleep(LOOK_EVERY_S)


def _report(db: Database, job: JobInFull, options: argparse.Namespace, *, interrupted: bool) -> int:
    _save_artifacts(db, job, options.artifacts)
    if job.status is JobStatus.SUCCEEDED:
        print(json.dumps(job.result, ensure_ascii=False, indent=2))
        return 0
    if job.output:
        print(job.output.rstrip(), file=sys.stderr)
    print(f"{job.status}: {job.error or 'it had not begun'}", file=sys.stderr)
    return INTERRUPTED if interrupted and job.status is JobStatus.CANCELLED else FAILED


def _split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    given: dict[str, str] = {}
    problems: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            problems.append(f"--param {word}: must be NAME=VALUE")
        elif name in given:
            problems.append(f"--param {name}: is given more than once")
        else:
            given[name] = value
    return given, problems


def _wrong(problems: list[str]) -> int:
    print("\n".join(problems), file=sys.stderr)
    return WRONG


def _explain(field: str, message: str, kind: str) -> str:
    return f"--param {field or '…'}: {field_error(field, {'type': kind, 'msg': message}).message}"
