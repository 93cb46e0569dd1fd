"""`demo`: loads the demo neighbourhood in Kadıköy. Running it again changes nothing. `demo --live` lets it live."""

import argparse
import time
from collections.abc import Mapping
from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

from app.api.tokens import LocalTokens
from app.cli.command import CommandFailed, command_database, fail, print_table
from app.cli.demo_lists import leave_demo_lists
from app.cli.live.agenda import Agenda
from app.cli.live.copy_client import CopyClient
from app.cli.live.habits import Habits
from app.cli.live.town_life import Dweller, LifeRefused, TownLife
from app.cli.signals import stop_on_signals
from app.jobs import service as jobs
from app.settings.settings import AuthMode, Settings
from app.users import service as users
from app.users.models import Role

EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
MOST_PACE = 100.0


def main(settings: Settings, argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    if not 0 < options.pace <= MOST_PACE:
        return fail(f"--pace is a number above 0 and at most {MOST_PACE:.0f}.")
    if options.live and (settings.auth_mode is not AuthMode.LOCAL or settings.auth_secret is None):
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
    if not options.live:
        _print_people(ids)
        return 0
    try:
        _live(settings, ids, options.pace, options.address or _address_of(settings))
    except LifeRefused as refused:
        return fail(str(refused))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="demo", description="Load the demo neighbourhood. With --live, let its people live until Ctrl-C."
    )
    parser.add_argument("--live", action="store_true", help="act for everybody but those whom the README uses")
    parser.add_argument("--pace", type=float, default=1.0, help="1 is about one press every 6 s; 10 ten times as fast")
    parser.add_argument("--address", help="of the running copy (default: HOST and PORT of the settings)")
    return parser


def _print_people(ids: Mapping[str, int]) -> None:
    rows = [(ids[one.key], one.role, one.name, _distance(one)) for one in jobs.YOURS]
    print_table(("ID", "ROLE", "NAME", "FROM AYŞE"), rows)
    print(f"… and {len(ids) - len(rows)} elders and students farther away; `users list` shows them.")


def _distance(neighbour: jobs.Neighbour) -> str:
    return f"{neighbour.metres:.0f} m" if neighbour.metres else ""


def _live(settings: Settings, ids: Mapping[str, int], pace: float, address: str) -> None:
    stop = stop_on_signals()
    zone = ZoneInfo(settings.time_zone)

    def say(line: str) -> None:
        print(f"{datetime.now(zone):%H:%M:%S}  {line}", flush=True)

    assert settings.auth_secret is not None, "checked before"
    client = CopyClient(address, LocalTokens(settings.auth_secret).issue)
    agenda = Agenda(time.monotonic, stop.wait, say)
    dwellers = {ids[one.key]: Dweller(ids[one.key], one.role, one.name, one.home) for one in jobs.others()}
    watcher_id = ids[users.demo_key(Role.ADMIN, 1)]
    # Different in each run, so that somebody who looks twice sees something new.
    TownLife(dwellers, watcher_id, client, Habits(Random(), pace), agenda, say).begin()
    say(f"{len(dwellers)} people live at {address} at pace {pace:g}, until Ctrl-C.")
    agenda.run()


def _address_of(settings: Settings) -> str:
    host = EVERY_ADDRESS.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"
