"""`audit verify`: checks the hash chain of the audit trail from its first entry to its last, and its signed heads."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import text

from app.cli.command import CommandFailed, command_database, fail
from app.db.database import Database
from app.delivery import service as delivery
from app.delivery.contract import GENESIS, KnownHeads, Verified
from app.settings.settings import Settings


def main(settings: Settings, argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    folder = settings.audit_heads_dir
    heads = delivery.read_heads(Path(folder), settings.audit_keys) if folder else KnownHeads((), ())
    entries: dict[int, str] = {}
    """The hashes of the entries that have a head."""
    signed = {head.entry for head in heads.heads}
    try:
        with command_database(settings, "audit") as db:
            found = delivery.verify_audit_trail(
                db,
                options.known,
                note=lambda entry: entries.update({entry.id: entry.hash.hex()} if entry.id in signed else {}),
            )
            may_rewrite = _may_rewrite(db)
    except CommandFailed as failure:
        return fail(str(failure))
    if found.broken_id is not None:
        return fail(f"Entry {found.broken_id} does not follow from the {found.count} before it.")
    print(f"{_entries(found.count)}, last hash {found.last_hash.hex()}")
    problems = list(_problems(found, heads, entries))
    if problems:
        return fail("\n".join(problems))
    for line in _unknown(settings, found, heads, may_rewrite):
        print(line)
    return 0


def _problems(found: Verified, heads: KnownHeads, entries: dict[int, str]) -> Iterator[str]:
    if found.missing is not None:
        yield f"No entry has the hash {found.missing.hex()}: the end of the trail was cut off or rewritten."
    for name in heads.forged:
        yield f"The head {name} is not signed with a key of AUDIT_KEY."
    for head in heads.heads:
        if entries.get(head.entry) != head.hash:
            yield (
                f"Entry {head.entry}, signed on {head.at}, is not in the trail as it was:"
                " the trail was cut off or rewritten."
            )
            return


def _unknown(settings: Settings, found: Verified, heads: KnownHeads, may_rewrite: bool) -> Iterator[str]:
    """What a right chain does not show."""
    if not settings.audit_heads_dir:
        yield (
            "Not known: whether this is the whole trail, and the same as yesterday. Whoever can write to the database"
            " could have cut it off or written a new one. AUDIT_HEADS_DIR and AUDIT_KEY are not set."
        )
    elif not heads.heads:
        yield f"Not known: whether this is the whole trail, because {settings.audit_heads_dir} has no signed head yet."
    else:
        newest = heads.heads[-1]
        covered = "all of them" if newest.entry == found.last_id else f"those up to entry {newest.entry}"
        yield f"Signed heads: {len(heads.heads)}. The newest, of {newest.at}, covers {covered}."
        yield (
            "Not known: whether entries after it were changed or removed before they were signed, and whether newer"
            " heads were deleted. Keep copies of the heads where this machine cannot delete them."
        )
    if may_rewrite:
        yield "The role in DATABASE_URL may change the trail. Give the service a role that owns no table."


_MAY_REWRITE = text(
    "SELECT pg_has_role(relowner, 'USAGE') OR has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE, TRIGGER')"
    " FROM pg_class WHERE oid = 'audit_entries'::regclass"
)


def _may_rewrite(db: Database) -> bool:
    with db.reading() as conn:
        return conn.execute(_MAY_REWRITE).scalar_one()


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


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
