"""`dead-letters list | show ID | redrive … | discard …`."""

import argparse
import sys
from datetime import datetime
from uuid import UUID

from app.cli.command import CommandFailed, command_database, fail, print_table
from app.cli.moments import FORMS, moment
from app.db.database import Database
from app.delivery import service as delivery
from app.delivery.contract import EVERY, DeadLetterCriteria, DeadLetterStatus, DeadLetterView
from app.delivery.service import discard_dead_letter, discard_dead_letters, redrive_dead_letter, redrive_dead_letters
from app.settings.settings import Settings
from app.users.contract import EVERYTHING

PAGE = 100
TITLES = ("ID", "FAILED", "PLAN", "STEP", "CHANNEL", "TRIES", "STATUS", "ERROR", "WHAT HAPPENED")


def main(settings: Settings, argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        with command_database(settings, "dead-letters") as db:
            match options.command:
                case "list":
                    return _list(db, options)
                case "show":
                    return _show(db, options.id)
                case "redrive":
                    return _redrive(db, options, settings.notification_max_age_s)
                case _:
                    return _discard(db, options)
    except CommandFailed as failure:
        return fail(str(failure))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dead-letters", description="List, show, redrive and discard dead letters.")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list dead letters, newest first; only open ones by default")
    listing.add_argument("--status", choices=[*DeadLetterStatus, "ALL"], default=DeadLetterStatus.OPEN)
    listing.add_argument("--limit", type=_positive, default=PAGE, help=f"how many at most (default {PAGE})")
    _add_filters(listing)
    show = commands.add_parser("show", help="show all data of one dead letter")
    show.add_argument("id", type=UUID)
    for name, about in (
        ("redrive", "send one, or all that match, again"),
        ("discard", "close one, or all that match, without sending it again"),
    ):
        close = commands.add_parser(name, help=about)
        close.add_argument("id", type=UUID, nargs="?")
        close.add_argument("--all", action="store_true", help="all that are open and match the filters")
        _add_filters(close)
    return parser


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--channel", metavar="TYPE", help="push, email, sms, whatsapp, webhook, …")
    parser.add_argument("--code", help="error code, as the list shows it")
    parser.add_argument("--plan", type=_positive, metavar="ID", help="id of the action plan")
    parser.add_argument("--since", type=moment, metavar="TIME", help=f"failed then or later: {FORMS}")
    parser.add_argument("--until", type=moment, metavar="TIME", help="failed before then")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:20]) < 2**63):
        raise argparse.ArgumentTypeError("must be a whole number, 1 or more")
    return int(text)


def _filter(options: argparse.Namespace) -> DeadLetterCriteria:
    return DeadLetterCriteria(options.channel, options.code, options.plan, options.since, options.until)


def _list(db: Database, options: argparse.Namespace) -> int:
    status = None if options.status == "ALL" else DeadLetterStatus(options.status)
    dead_letters: list[DeadLetterView] = []
    cursor: str | None = None
    while len(dead_letters) < options.limit:
        most = min(PAGE, options.limit - len(dead_letters))
        with db.transaction() as conn:
            page = delivery.list_dead_letters(
                conn, EVERYTHING, status=status, which=_filter(options), cursor=cursor, limit=most
            )
        dead_letters += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    if not dead_letters:
        print("No dead letters match.")
        return 0
    print_table(TITLES, [_cells(dead_letter) for dead_letter in dead_letters])
    if cursor is not None:
        print(f"There are more than these {len(dead_letters)}; --limit shows more of them.")
    return 0


def _cells(dead_letter: DeadLetterView) -> tuple[object, ...]:
    return (
        dead_letter.id,
        _local(dead_letter.failed_at),
        dead_letter.action_plan_id or "-",
        dead_letter.step_order or "-",
        dead_letter.channel_type,
        dead_letter.retry_count + 1,
        dead_letter.status,
        dead_letter.error_code,
        dead_letter.error_message,
    )


def _local(moment: datetime) -> str:
    return moment.astimezone().isoformat(" ", "seconds")


def _show(db: Database, id_: UUID) -> int:
    with db.transaction() as conn:
        dead_letter = delivery.get_dead_letter(conn, EVERYTHING, id_)
    retryable = "another try may help" if dead_letter.retryable else "another try fails until the cause is fixed"
    known = {
        "Id": dead_letter.id,
        "Status": dead_letter.status,
        "Failed": _local(dead_letter.failed_at),
        "Channel": dead_letter.channel_type,
        "Error": f"{dead_letter.error_code}: {dead_letter.error_message}",
        "Retries": f"{dead_letter.retry_count} after the first try; {retryable}",
        "Action plan": dead_letter.action_plan_id,
        "Step": dead_letter.step_order,
        "Action": dead_letter.action_id,
        "Trace": dead_letter.trace_id,
        "Notification": dead_letter.notification_id,
        "Closed": _local(dead_letter.closed_at) if dead_letter.closed_at else None,
        "Closed by": f"user {dead_letter.closed_by}" if dead_letter.closed_by else None,
    }
    for name, value in known.items():
        if value is not None:
            print(f"{name + ':':<14}{value}")
    return 0


def _redrive(db: Database, options: argparse.Namespace, max_age_s: float) -> int:
    which = _criteria(options)
    if which is not None:
        return _redrive_all(db, which, max_age_s)
    with db.transaction() as conn:
        redrive_dead_letter(conn, EVERYTHING, options.id, None, max_age_s)
    print("Redriven: it is sent again now.")
    return 0


def _criteria(options: argparse.Namespace) -> DeadLetterCriteria | None:
    """The filter for several dead letters; None if one id is given."""
    which = _filter(options)
    if options.id is not None and (options.all or which != EVERY):
        raise CommandFailed("Give either an id, or --all with filters.")
    if options.id is None and not options.all:
        filters = "--channel, --code, --plan, --since and --until"
        raise CommandFailed(f"Give an id, or --all. The filters of --all are {filters}.")
    return None if options.id is not None else which


def _redrive_all(db: Database, which: DeadLetterCriteria, max_age_s: float) -> int:
    done = 0
    while True:
        with db.transaction() as conn:
            batch = redrive_dead_letters(conn, which, None, max_age_s=max_age_s)
        done += batch.redriven
        if not batch.redriven or not batch.remaining:
            break
        print(f"{done} redriven, {batch.remaining} to go", file=sys.stderr, flush=True)
    print(f"Redriven: {done}.")
    if batch.skipped:
        print(f"Skipped: {batch.skipped}, which have expired or never became a notification.")
        print("`dead-letters discard` closes them.")
    if batch.remaining:
        print(f"Still open: {batch.remaining}, whose steps are still running; try again in a moment.")
    return 0


def _discard(db: Database, options: argparse.Namespace) -> int:
    which = _criteria(options)
    if which is None:
        with db.transaction() as conn:
            discard_dead_letter(conn, EVERYTHING, options.id, None)
        print("Discarded: it stays on record, but no longer counts for the alarm.")
        return 0
    done = 0
    while True:
        with db.transaction() as conn:
            batch = discard_dead_letters(conn, which, None)
        done += batch.discarded
        if not batch.discarded or not batch.remaining:
            break
        print(f"{done} discarded, {batch.remaining} to go", file=sys.stderr, flush=True)
    print(f"Discarded: {done}.")
    return 0
