"""`demo`: loads the demo neighbourhood in Kadıköy. Running it again changes nothing."""

from app.cli.command import CommandFailed, command_database, fail, print_table
from app.cli.demo_lists import leave_demo_lists
from app.jobs import service as jobs
from app.settings.settings import Settings


def main(settings: Settings, argv: list[str]) -> int:
    if argv:
        return fail("usage: demo")
    try:
        with command_database(settings, "demo") as db, db.transaction() as conn:
            ids = jobs.settle_neighbourhood(conn, settings.time_zone)
        if settings.roster_dir is not None:
            leave_demo_lists(settings)
    except CommandFailed as failure:
        return fail(str(failure))
    except OSError as error:
        return fail(f"The lists of the demo cannot be written: {error}. Check ROSTER_DIR.")
    rows = [(ids[one.key], one.role, one.name, _distance(one)) for one in jobs.YOURS]
    print_table(("ID", "ROLE", "NAME", "FROM AYŞE"), rows)
    print(f"… and {len(ids) - len(rows)} elders and students farther away; `users list` shows them.")
    return 0


def _distance(neighbour: jobs.Neighbour) -> str:
    return f"{neighbour.metres:.0f} m" if neighbour.metres else ""
