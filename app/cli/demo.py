"""`demo`: loads the demo neighbourhood in Kadıköy. Running it again changes nothing. `demo --live` lets it live."""

import argparse
from collections.abc import Mapping

from app.cli.command import CommandFailed, command_database, fail, print_table
from app.cli.demo_lists import leave_demo_lists
from app.jobs import service as jobs
from app.settings.settings import AuthMode, Settings

MOST_PACE = 100.0


def main(settings: Settings, argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    if not 0 < options.pace <= MOST_PACE:
        return fail(f"--pace is a number above 0 and at most {MOST_PACE:.0f}.")
    if options.live and settings.auth_mode is not AuthMode.LOCAL:
        return fail("Nobody can act for the people of the demo here, because Firebase issues the tokens.")
    try:
        with command_database(settings, "demo") as db, db.transaction() as conn:
            ids = jobs.settle_neighbourhood(conn, settings.time_zone)
        if settings.roster_dir is not None:
            leave_demo_lists(settings)
    except CommandFailed as failure:
        return fail(str(failure))
    except OSError as error:
        return fail(f"The lists of the demo cannot be written: {error}. Check ROSTER_DIR.")
    if options.live:
        # Imported here because every start of a copy runs this command, and only few of them need tokens.
        from app.cli.run_live_demo import live

        return live(settings, ids, options.pace, options.address, options.always)
    _print_people(ids)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="demo", description="Load the demo neighbourhood. With --live, let its people live until Ctrl-C."
    )
    parser.add_argument("--live", action="store_true", help="act for everybody but those whom the README uses")
    parser.add_argument("--pace", type=float, default=1.0, help="1 is about one press every 6 s; 10 ten times as fast")
    parser.add_argument(
        "--always",
        choices=("accept", "reject", "silence"),
        help="what every student replies, those of the README too: to test an app without a second phone",
    )
    parser.add_argument("--address", help="of the running copy (default: HOST and PORT of the settings)")
    return parser


def _print_people(ids: Mapping[str, int]) -> None:
    rows = [(ids[one.key], one.role, one.name, _distance(one)) for one in jobs.YOURS]
    print_table(("ID", "ROLE", "NAME", "FROM AYŞE"), rows)
    print(f"… and {len(ids) - len(rows)} elders and students farther away; `users list` shows them.")


def _distance(neighbour: jobs.Neighbour) -> str:
    return f"{neighbour.metres:.0f} m" if neighbour.metres else ""
