"""`roster sync | runs | show RUN | approve RUN`. Reports go to stdout, progress to stderr."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.bootstrap.roster import open_roster
from app.cli.command import CommandFailed, command_database, command_errors, fail, print_table
from app.cli.job_progress import ProgressLines
from app.jobs.contract import JobProgress
from app.roster import service as roster
from app.roster.contract import RunParts, RunReport, RunStatus
from app.settings.roster_sources import parse_sources
from app.settings.settings import Settings

EXIT_CODES = {RunStatus.SUCCEEDED: 0, RunStatus.PARTIAL: 3, RunStatus.FAILED: 1}
RECENT = 20


def main(settings: Settings, argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        return {"sync": _sync, "runs": _runs, "show": _show, "approve": _approve}[options.command](settings, options)
    except CommandFailed as failure:
        return fail(str(failure))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="roster", description="Lists of students and elders, and their changes.")
    commands = parser.add_subparsers(dest="command", required=True)
    sync = commands.add_parser(
        "sync",
        help="take the newest lists; exit code 0 all taken, 3 partly (refused, held back, or another run), 1 nothing",
    )
    sync.add_argument("--kind", action="append", default=[], metavar="KIND", help="only this one; may be repeated")
    sync.add_argument(
        "--list",
        action="append",
        default=[],
        type=_named_file,
        metavar="SOURCE/LIST=FILE",
        help="take this file instead of the one in ROSTER_SOURCES; may be repeated",
    )
    sync.add_argument("--dry-run", action="store_true", help="only tell what would change")
    commands.add_parser("runs", help="list the last runs")
    for name, about in (
        ("show", "print the report of a run"),
        ("approve", "let the next run apply what this one held"),
    ):
        commands.add_parser(name, help=about).add_argument("run", type=int, metavar="RUN")
    return parser


def _named_file(word: str) -> tuple[str, str, str]:
    source, _, rest = word.partition("/")
    name, _, file = rest.partition("=")
    if not (source and name and file):
        raise argparse.ArgumentTypeError("must be SOURCE/LIST=FILE, such as students/enrolment=/tmp/enrolment.zip")
    return source, name, str(Path(file).absolute())


def _sync(settings: Settings, options: argparse.Namespace) -> int:
    db, matching = open_roster(settings)
    progress, parts = ProgressLines(), RunParts()

    def step(place: str, part: str, records: int) -> None:
        done, note = parts.reach(place, part, records)
        progress.show(JobProgress(done, None, note))

    try:
        with command_errors():
            chosen = with_lists(settings, options.list)
            processes = os.cpu_count() or 1
            report = roster.sync(
                db, matching, chosen, options.kind, dry_run=options.dry_run, step=step, processes=processes
            )
    finally:
        db.close()
    progress.end(None)
    _print_report(report)
    return EXIT_CODES[report.status]


def with_lists(settings: Settings, files: Sequence[tuple[str, str, str]]) -> Settings:
    sources = {name: dict(lists) for name, lists in parse_sources(settings.roster_sources).items()}
    for source, name, file in files:
        sources.setdefault(source, {})[name] = file
    return settings.model_copy(update={"roster_sources": json.dumps(sources)})


def _print_report(report: RunReport) -> None:
    rows = [
        (one.kind, one.rows, one.added, one.modified, one.removed, _held(one.removals_held, one.modifications_held))
        for one in report.kinds.values()
    ]
    rows += [(name, "", 0, 0, 0, "unchanged") for name in report.unchanged]
    if rows:
        print_table(("KIND", "ROWS", "ADDED", "MODIFIED", "REMOVED", ""), rows)
    for name, found in report.people.items():
        if told := _people(found):
            print(f"{name}: {told}")
    for one in report.kinds.values():
        if one.at_risk and any(one.at_risk.values()):
            print(f"{one.kind}: would end {_people(one.at_risk)}")
    for name, refusal in report.refused.items():
        print(f"{name}: refused ({refusal['code']}). {refusal['detail']}")
    for name, seen in report.lists.items():
        for row in seen.bad_rows:
            print(f"{name} line {row['line']}: {row['field']}: {row['flaw']}")
        if seen.bad > len(seen.bad_rows):
            print(f"{name}: {seen.bad - len(seen.bad_rows):,} more bad rows")
    print(_sentence(report))


def _people(counts: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items() if number and name != "longest_ms"
    )


def _held(removals: str | None, modifications: str | None) -> str:
    return "; ".join(f"held back: {reason}" for reason in (removals, modifications) if reason)


def _sentence(report: RunReport) -> str:
    if report.reason:
        return report.reason
    if report.dry_run:
        return "This was a dry run; nothing was changed."
    if any(one.is_held_back for one in report.kinds.values()):
        return f"Look at what was held back. If it is right: roster approve {report.id}, and sync again."
    return f"Run {report.id}: {report.status}."


def _runs(settings: Settings, _options: argparse.Namespace) -> int:
    with command_database(settings, "roster") as db, db.reading() as conn:
        runs = roster.list_runs(conn, cursor=None, limit=RECENT).items
    print_table(
        ("RUN", "STARTED", "STATUS", "KINDS"),
        [
            (run.id, f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC", run.status, ", ".join(run.report.get("kinds", {})))
            for run in runs
        ],
    )
    return 0


def _show(settings: Settings, options: argparse.Namespace) -> int:
    with command_database(settings, "roster") as db, db.reading() as conn:
        print(json.dumps(roster.get_run(conn, options.run).report, ensure_ascii=False, indent=2))
    return 0


def _approve(settings: Settings, options: argparse.Namespace) -> int:
    with command_database(settings, "roster") as db, db.transaction() as conn:
        kinds = roster.approve_run(conn, options.run, None)
    print(f"Approved for the same lists, once: {', '.join(kinds)}. Run `roster sync` now.")
    return 0
