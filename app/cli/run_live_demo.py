"""`demo --live`: lets the people of the demo live in a running copy until Ctrl-C."""

import time
from collections.abc import Mapping
from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

from app.api.tokens import LocalTokens
from app.cli.command import fail
from app.cli.live.agenda import Agenda
from app.cli.live.copy_client import CopyClient
from app.cli.live.habits import Habits, StudentReply
from app.cli.live.town_life import Dweller, LifeRefused, TownLife
from app.cli.signals import stop_on_signals
from app.jobs import service as jobs
from app.settings.settings import Settings
from app.users import service as users
from app.users.models import Role

EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def live(
    settings: Settings, ids: Mapping[str, int], pace: float, address: str | None, always: str | None = None
) -> int:
    """`ids` are those of all demo people by their keys. With `always`, the README's people answer too."""
    stop = stop_on_signals()
    zone = ZoneInfo(settings.time_zone)

    def say(line: str) -> None:
        print(f"{datetime.now(zone):%H:%M:%S}  {line}", flush=True)

    assert settings.auth_secret is not None, "AUTH_MODE=local requires it"
    address = address or _address_of(settings)
    client = CopyClient(address, LocalTokens(settings.auth_secret).issue)
    agenda = Agenda(time.monotonic, stop.wait, say)
    reply = StudentReply(always) if always else None
    dwellers = dwellers_of(ids, reply)
    watcher_id = ids[users.demo_key(Role.ADMIN, 1)]
    # Different in each run, so that somebody who looks twice sees something new.
    TownLife(dwellers, watcher_id, client, Habits(Random(), pace, reply), agenda, say).begin()
    say(f"{len(dwellers)} people live at {address} at pace {pace:g}, until Ctrl-C.")
    try:
        agenda.run()
    except LifeRefused as refused:
        return fail(str(refused))
    return 0


def dwellers_of(ids: Mapping[str, int], always: StudentReply | None) -> dict[int, Dweller]:
    found = {ids[one.key]: Dweller(ids[one.key], one.role, one.name, one.home) for one in jobs.others()}
    if always:
        yours = [one for one in jobs.YOURS if one.metres is not None]
        found |= {ids[one.key]: Dweller(ids[one.key], one.role, one.name, jobs.HOME, True) for one in yours}
    return found


def _address_of(settings: Settings) -> str:
    host = EVERY_ADDRESS.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"
