"""`token USER_ID | token --admin`: prints a bearer token of `AUTH_MODE=local` and nothing else."""

import argparse

from sqlalchemy import Connection, text

from app.api.tokens import LocalTokens
from app.cli.command import CommandFailed, command_database, fail
from app.foundation.pages import BIGINT_MAX
from app.settings.settings import AuthMode, Settings
from app.users import service as users
from app.users.contract import UserNotFound
from app.users.models import Role

ADMIN_NAME = "Yönetici"


def main(settings: Settings, argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="token", description="Print a bearer token that is valid for 24 hours.")
    whose = parser.add_mutually_exclusive_group(required=True)
    whose.add_argument("user_id", nargs="?", type=int, metavar="USER_ID", help="id of a user; see `users list`")
    whose.add_argument("--admin", action="store_true", help="use the first administrator; adds one if there is none")
    options = parser.parse_args(argv)
    wanted: int = options.user_id or 0
    if settings.auth_mode is not AuthMode.LOCAL or settings.auth_secret is None:
        return fail("Tokens are issued by Firebase here (AUTH_MODE=firebase); sign in with the app.")
    if not options.admin and not 1 <= wanted <= BIGINT_MAX:
        return fail("Ids of users begin at 1. `users list` shows them.")
    try:
        with command_database(settings, "token") as db, db.transaction() as conn:
            user_id = admin(conn) if options.admin else _active_user(conn, wanted)
    except CommandFailed as failure:
        return fail(str(failure))
    print(LocalTokens(settings.auth_secret).issue(user_id))
    return 0


def admin(conn: Connection) -> int:
    """The first active administrator. Two concurrent callers create only one."""
    conn.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('first administrator', 0))"))
    found = conn.execute(
        text("SELECT id FROM users WHERE role = 'ADMIN' AND active ORDER BY (name = :name) DESC, id LIMIT 1"),
        {"name": ADMIN_NAME},
    ).scalar_one_or_none()
    return found or users.create_user(conn, users.NewUser(Role.ADMIN, ADMIN_NAME)).id


def _active_user(conn: Connection, user_id: int) -> int:
    caller = users.find_caller(conn, user_id)
    if caller is None:
        raise UserNotFound("There is no user with this id. `users list` shows all users.")
    return caller.id
