"""Forgets one person who wishes it: everything about them, everywhere. Their id stays, because counts refer to it.

The order matters. First the person is deactivated by the usual deed, so that their task or offer ends properly and
nobody waits for them. From then on nothing new is written about them. The row with their name comes last, so that an
interrupted call can be repeated.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection

from app.db.database import Database
from app.delivery import service as delivery
from app.delivery.contract import OPERATOR, FoundTraces, Notification, PersonTraces, Priority
from app.foundation.clock import rfc3339
from app.foundation.errors import Unavailable
from app.foundation.ids import uuid7
from app.matching import service as matching
from app.redis_store.traces import Traces
from app.roster import service as roster
from app.users import service as users
from app.users.models import Role

SUBSTITUTES = {Role.STUDENT: "Öğrenci", Role.ELDER: "Talep sahibi"}
"""Stands for the name in messages that others still have to get: "Öğrenci gelemiyor."."""
SENT_WITHIN_S = 90.0
"""Longer than a worker may take to send a message that it has in its memory."""
POLL_S = 0.2
SHORTEST_WORD = 2
SHORTEST_SECRET = 12
"""A shorter token or device id, such as "phone", may be a word of somebody else's message."""
WHY = {
    "users": "The row keeps the id, the role, the institution and the language: tasks, offers and counts refer to it.",
    "tasks": "They are the counts. Notes are gone, and the place is the middle of a cell of about 5 km.",
    "messages": "Rows of messages keep their kind, their times and their results, without words and addresses.",
    "audit_entries": "The law asks for the audit trail, and its hash chain allows no change.",
    "message_templates": "Operators wrote them. Edit the templates that name this person.",
    "action_plans": "Operators wrote them. Edit the plans that name this person.",
    "recipient_profiles": "Operators wrote them, without a link to the user. Edit those that mean this person.",
    "roster_rows": "The list of the publisher names this person. Ask the publisher to take them off it.",
    "firebase_account": "It is at Google, with what the person signs in with. Delete it in the Firebase console.",
    "jobs": "They have not ended. They are forgotten RETAIN_JOBS_DAYS after their end.",
}


class StillSending(Unavailable):
    """A message to or about the person was being sent all the time, so not everything could be forgotten."""

    code = "still_sending"


class ForgetWords(Protocol):
    """Forgets rows that hold one of the words, and returns how many, and how many stay."""

    def __call__(self, conn: Connection, words: Sequence[str], *, dry_run: bool) -> tuple[int, int]: ...


@dataclass(frozen=True)
class Forgetting:
    db: Database
    matching: matching.Matching
    redis: Traces
    country_code: str
    forget_jobs: ForgetWords
    """Of a package above."""
    sleep: Callable[[float], None] = time.sleep
    sent_within_s: float = SENT_WITHIN_S


def forget_person(parts: Forgetting, user_id: int, *, by: int | None = None, dry_run: bool = False) -> dict[str, Any]:
    """Returns the receipt, which holds no personal data. `by` is the admin who does it, if it is not an operator.

    A repeated call changes nothing, and its receipt says so. If a call was interrupted, a repeated one finishes it.
    """
    with parts.db.transaction() as conn:
        person = users.known_person(conn, user_id)
        users.check_not_last_admin(conn, person)
    if not dry_run:
        # Also if the person is not active, because an open task or offer may be left from a call that was interrupted.
        # The traces are searched by the ids of the phones, which are forgotten last.
        parts.matching.set_active(user_id, False, keeps_devices=True)
    with parts.db.transaction() as conn:
        # Again, because a phone may have been registered until then.
        person = users.known_person(conn, user_id)
        traces = _traces(conn, person, parts.country_code)
        found = delivery.find_traces(conn, traces)
    rows = _found(found) if dry_run else _forget(parts, person, traces, found)
    words = traces.only_theirs
    rows |= parts.redis.forget(user_id, words, dry_run=dry_run)
    with parts.db.transaction() as conn:
        kept = delivery.count_kept(conn, found, traces)
        kept["firebase_account"] = int(person.firebase_uid is not None)
        rows["jobs"], kept["jobs"] = parts.forget_jobs(conn, words, dry_run=dry_run)
        kept["roster_rows"] = roster.count_listed_rows(conn, user_id)
        if not dry_run:
            rows |= users.forget_user(conn, user_id)
            rows["roster_people"] = roster.unbind_person(conn, user_id)
        receipt = _receipt(parts.db.now(), person, rows, kept, dry_run)
        if not dry_run:
            delivery.append_to_audit_trail(conn, _audited(receipt, by), f"user:{by}" if by else OPERATOR)
    return receipt


def _traces(conn: Connection, person: users.KnownPerson, country_code: str) -> PersonTraces:
    tasks, others = matching.tasks_of_person(conn, person.id), users.namesakes(conn, person)
    in_directory = set(delivery.own_addresses(conn, person.id))
    spelled = delivery.spellings(person.phone, country_code) if person.phone else set[str]()
    is_shared = _is_shared(conn, spelled, person.id)
    if is_shared:
        in_directory -= spelled
    opaque = {*person.tokens, *person.device_ids, person.firebase_uid or "", *in_directory}
    secrets = {word for word in opaque if len(word) >= SHORTEST_SECRET}
    for phone in [word for word in in_directory if word.startswith("+")]:
        secrets |= delivery.spellings(phone, country_code)
    name = "" if person.name == users.FORGOTTEN else person.name
    names = [name, *name.split()[:1]]
    if is_shared:
        names += sorted(spelled)
    else:
        secrets |= spelled
    return PersonTraces(
        person.id,
        name,
        tuple(word for word in dict.fromkeys(names) if len(word) >= SHORTEST_WORD),
        tuple(sorted(secrets)),
        tuple(sorted({f"user:{person.id}", *person.tokens, *secrets, *in_directory})),
        tasks.requested,
        tasks.asked_for,
        tuple(others),
        tuple(one for id_, phone in others.items() for one in _addresses(id_, phone, country_code)),
    )


def _addresses(user_id: int, phone: str | None, country_code: str) -> set[str]:
    return {f"user:{user_id}"} | (delivery.spellings(phone, country_code) if phone else set())


def _is_shared(conn: Connection, phone: set[str], user_id: int) -> bool:
    """Then messages to this number may be for the other person, so the number alone finds none."""
    return users.is_phone_of_others(conn, phone, user_id) or delivery.is_address_of_others(conn, phone, user_id)


def _found(found: FoundTraces) -> dict[str, int]:
    return {
        "notifications": len(found.notifications),
        "actions": len(found.actions),
        "recipient_profiles": len(found.profiles),
        "recipient_channels": len(found.channels),
    }


def _forget(parts: Forgetting, person: users.KnownPerson, traces: PersonTraces, found: FoundTraces) -> dict[str, int]:
    substitute = SUBSTITUTES.get(person.role, "Görevli")
    rows: Counter[str] = Counter()

    def do(work: Callable[..., Mapping[str, int]], *arguments: Any) -> None:
        with parts.db.transaction() as conn:
            rows.update(work(conn, *arguments))

    do(delivery.stop_messages, found)
    found = _found_since(parts, traces, found)
    for portion in found.portions():
        do(delivery.forget_words, portion, traces, substitute)
    # A worker that is sending a message may still write a copy of it, so copies come after that. The name is still in
    # the user's row, so that a repeated call finds what an interrupted one has left.
    _wait_for_workers(parts, found)
    found = _found_since(parts, traces, found)
    for portion in found.portions():
        do(delivery.forget_words, portion, traces, substitute)
    do(delivery.forget_copies, found, traces)
    do(delivery.forget_directory, found, users.FORGOTTEN)
    do(matching.forget_tasks, traces.requested, person.id)
    do(matching.forget_in_notes, traces.only_theirs, substitute)
    return dict(rows)


def _found_since(parts: Forgetting, traces: PersonTraces, before: FoundTraces) -> FoundTraces:
    """Reads the states again. A message from which the name was taken is not found any more, but its copies may be."""
    with parts.db.transaction() as conn:
        return delivery.find_traces(conn, traces).with_earlier(before)


def _wait_for_workers(parts: Forgetting, found: FoundTraces) -> None:
    give_up = time.monotonic() + parts.sent_within_s
    while time.monotonic() < give_up:
        with parts.db.reading() as conn:
            if not delivery.count_being_sent(conn, found):
                return
        parts.sleep(POLL_S)
    raise StillSending(
        "Not everything is forgotten yet, because a message to or about this person is being sent all the time."
        " Does the role `delivery` run? Repeat the command."
    )


def _receipt(
    now: datetime, person: users.KnownPerson, rows: Mapping[str, int], kept: Mapping[str, int], dry_run: bool
) -> dict[str, Any]:
    stays = [{"what": what, "why": why} | ({"rows": kept[what]} if what in kept else {}) for what, why in WHY.items()]
    receipt: dict[str, Any] = {
        "user_id": person.id,
        "role": person.role.value,
        "at": rfc3339(now),
        "dry_run": dry_run,
        "already_forgotten": person.is_forgotten,
        "rows": dict(sorted(rows.items())),
        "stays": [item for item in stays if item.get("rows") != 0],
    }
    return receipt | {"sha256": _digest(receipt)}


def _digest(receipt: Mapping[str, Any]) -> str:
    """Of the receipt without this member, as JSON with sorted keys and no spaces."""
    text = json.dumps(receipt, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _audited(receipt: Mapping[str, Any], by: int | None) -> Notification:
    metadata = {"sha256": receipt["sha256"], "by": by, "alreadyForgotten": receipt["already_forgotten"]}
    body = f"User {receipt['user_id']} was forgotten."
    at = datetime.fromisoformat(receipt["at"])
    return Notification(
        uuid7(), "AUDIT", f"user:{receipt['user_id']}", "privacy.forgotten", body, Priority.NORMAL, at, metadata
    )
