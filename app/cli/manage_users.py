"""`users add … | users list | users forget ID`. With Firebase, `users add` also adds the first administrator."""

import argparse
import json
import sys
from typing import Any

from pydantic import ValidationError

from app.api.schemas import NewUserBody
from app.api.validation import field_error
from app.bootstrap.forgetting import open_forgetting
from app.cli.command import CommandFailed, command_database, command_errors, fail, print_table
from app.db.database import Database
from app.foundation.pages import BIGINT_MAX
from app.privacy.service import forget_person
from app.settings.settings import Settings
from app.users import service as users
from app.users.models import Role

PAGE = 100


def main(settings: Settings, argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        if options.command == "forget":
            return _forget(settings, options)
        with command_database(settings, "users") as db:
            return _add(db, options) if options.command == "add" else _list(db, options.role)
    except CommandFailed as failure:
        return fail(str(failure))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="users", description="Add, list and forget users.")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="add a user and print the id")
    add.add_argument("--role", required=True, choices=[role.value for role in Role])
    add.add_argument("--name", required=True)
    add.add_argument("--phone")
    add.add_argument("--locale", choices=("tr", "en"), default="tr")
    add.add_argument("--institution-id", type=int)
    add.add_argument("--firebase-uid", help="uid of the person in the Firebase console")
    add.add_argument("--lat", type=float)
    add.add_argument("--lon", type=float)
    forget = commands.add_parser("forget", help="forget everything about a person, and print a receipt as JSON")
    forget.add_argument("user_id", type=_user_id, metavar="ID", help="id of a user; see `users list`")
    forget.add_argument("--yes", action="store_true", help="do not ask; needed without a terminal")
    forget.add_argument("--dry-run", action="store_true", help="only count what would be forgotten")
    listing = commands.add_parser("list", help="list users, newest first")
    listing.add_argument("--role", choices=[role.value for role in Role])
    return parser


def _user_id(word: str) -> int:
    if not word.isascii() or not word.isdigit() or not 1 <= int(word) <= BIGINT_MAX:
        raise argparse.ArgumentTypeError("is not the id of a user; `users list` shows all ids")
    return int(word)


def _forget(settings: Settings, options: argparse.Namespace) -> int:
    if not (options.dry_run or options.yes or _confirmed(options.user_id)):
        return fail("Nothing was forgotten. Repeat with --yes, or with --dry-run to see the numbers.")
    with command_errors(), open_forgetting(settings) as forgetting:
        receipt = forget_person(forgetting, options.user_id, dry_run=options.dry_run)
    print(json.dumps(receipt, ensure_ascii=False, indent=2))
    return 0


def _confirmed(user_id: int) -> bool:
    if not sys.stdin.isatty():
        return False
    print(f"Everything about user {user_id} will be forgotten, and their open task ends. This cannot be undone.")
    return input(f"Type {user_id} to go on: ").strip() == str(user_id)


def _add(db: Database, options: argparse.Namespace) -> int:
    if (options.lat is None) != (options.lon is None):
        return fail("--lat and --lon go together.")
    place = None if options.lat is None else {"lat": options.lat, "lon": options.lon}
    fields = {
        "role": Role(options.role),
        "name": options.name,
        "phone": options.phone,
        "locale": options.locale,
        "location": place,
        "institutionId": options.institution_id,
        "firebaseUid": options.firebase_uid,
    }
    try:
        checked = NewUserBody.model_validate(fields)
    except ValidationError as error:
        return fail("\n".join(_explain(item) for item in error.errors()))
    with db.transaction() as conn:
        user = users.create_user(conn, checked.to_new_user())
    print(user.id)
    return 0


def _explain(item: Any) -> str:
    names = {"institutionId": "institution-id", "firebaseUid": "firebase-uid"}
    field = str(item["loc"][-1])
    return f"--{names.get(field, field)} {field_error(field, item).message}"


def _list(db: Database, role: str | None) -> int:
    rows: list[tuple[object, ...]] = []
    cursor: str | None = None
    while True:
        with db.transaction() as conn:
            page = users.list_users(conn, role=Role(role) if role else None, cursor=cursor, limit=PAGE)
        rows += [(user.id, user.role, user.name, "yes" if user.active else "no") for user in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    print_table(("ID", "ROLE", "NAME", "ACTIVE"), rows)
    return 0
