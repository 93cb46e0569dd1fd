"""`audit verify`: checks the hash chain of the audit trail from its first entry to its last."""

import argparse

from app.cli.command import CommandFailed, command_database, fail
from app.delivery import service as delivery
from app.delivery.contract import GENESIS
from app.settings.settings import Settings


def main(settings: Settings, argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        with command_database(settings, "audit") as db:
            found = delivery.verify_audit_trail(db, options.known)
    except CommandFailed as failure:
        return fail(str(failure))
    if found.broken_id is not None:
        return fail(f"Entry {found.broken_id} does not follow from the {found.count} before it.")
    entries = "1 entry" if found.count == 1 else f"{found.count} entries"
    print(f"{entries}, last hash {found.last_hash.hex()}")
    if found.missing is not None:
        return fail(f"No entry has the hash {found.missing.hex()}: the end of the trail was cut off or rewritten.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="audit", description="Check the audit trail.")
    commands = parser.add_subparsers(dest="command", required=True)
    verify = commands.add_parser("verify", help="print the number of entries, and check that none was changed")
    verify.add_argument("--known", type=_hash, metavar="HASH", help="a hash printed earlier, which must still exist")
    return parser


def _hash(word: str) -> bytes:
    try:
        value = bytes.fromhex(word)
    except ValueError:
        value = b""
    if len(value) != len(GENESIS):
        raise argparse.ArgumentTypeError("is not a hash that this command has printed")
    return value
