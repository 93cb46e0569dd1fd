"""`vapid`: prints a new pair of keys for pushes to browsers."""

import argparse
import sys

from app.settings import vapid_keys
from app.settings.settings import Settings


def main(settings: Settings, argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="vapid", description="Print a new pair of keys, as settings.")
    parser.add_argument("subject", nargs="?", help="where push services reach you: mailto:… or https://…")
    subject: str | None = parser.parse_args(argv).subject
    if subject is not None:
        try:
            vapid_keys.check_subject(subject)
        except ValueError as error:
            parser.error(f"the subject {error}")
    public, private = vapid_keys.create()
    print(f"VAPID_PUBLIC_KEY={public}\nVAPID_PRIVATE_KEY={private}")
    if subject is None:
        print("Set VAPID_SUBJECT, too: mailto:… or https://…, where push services reach you.", file=sys.stderr)
    else:
        print(f"VAPID_SUBJECT={subject}")
    if settings.vapid_public_key is not None:
        print("This copy has keys. With new ones, every browser has to subscribe again.", file=sys.stderr)
    return 0
