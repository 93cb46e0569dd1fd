"""Limits how many messages a caller may submit, and how many callers may submit for one recipient and type.

They are counted in PostgreSQL, in the transaction that writes the message: exactly, for all processes together, and
also while Redis is down. A refused request is rolled back, so it does not count, and neither does a repeated one. What
matching and the stream of actions send is not counted.

A window begins with the first message after the last window. So a limit may be used up at the end of one window and
again at the beginning of the next one.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

from app.delivery.messages.traits import AddressForm, traits_of
from app.foundation.errors import TooManyRequests
from app.settings.settings import Settings

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


class SendingLimited(TooManyRequests):
    """The caller, or all callers for one recipient, have sent too many messages; try again later."""

    code = "sending_limit"


@dataclass(frozen=True)
class SendingLimits:
    per_minute: int
    per_day: int
    per_recipient: int
    """In an hour, of one type."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "SendingLimits":
        return cls(settings.sends_per_minute, settings.sends_per_day, settings.sends_per_recipient)


@dataclass(frozen=True)
class _Window:
    subject: UUID
    length_s: int
    most: int


# The rows are locked in one order, so that two requests with the same subjects cannot deadlock.
_COUNT = text(
    """
    WITH given AS MATERIALIZED (
        SELECT subject, window_s, most, count(*) AS added
          FROM unnest(CAST(:subjects AS uuid[]), CAST(:lengths AS int[]), CAST(:most AS int[]))
               AS one (subject, window_s, most)
         GROUP BY subject, window_s, most
    ), counted AS (
        INSERT INTO sending_counts AS c (subject, window_s, began_at, count)
        SELECT subject, window_s, clock_timestamp(), added FROM given ORDER BY subject, window_s
            ON CONFLICT (subject, window_s) DO UPDATE
           SET (began_at, count) = (
               SELECT CASE WHEN is_over THEN clock_timestamp() ELSE c.began_at END,
                      CASE WHEN is_over THEN 0 ELSE c.count END + excluded.count
                 FROM (SELECT c.began_at + make_interval(secs => c.window_s) <= clock_timestamp() AS is_over) AS last)
        RETURNING subject, window_s, began_at, count
    )
    SELECT max(ceil(extract(epoch FROM began_at + make_interval(secs => window_s) - clock_timestamp())))::int AS wait_s
      FROM counted JOIN given USING (subject, window_s) WHERE count > most
    """
)


def count_message(conn: Connection, limits: SendingLimits, caller_id: int, type_: str, recipient: str) -> None:
    """Counts a message that the caller has just submitted in this transaction. Raises `SendingLimited`."""
    _count(conn, [*_of_caller(limits, caller_id), *_of_recipients(limits, [(type_, recipient)])])


_OF_ACTION = text("SELECT notification_type, recipient FROM notifications WHERE id = ANY(:ids)")


def count_action(
    conn: Connection,
    limits: SendingLimits,
    caller_id: int,
    about: tuple[int, int | None],
    notification_ids: Sequence[UUID],
) -> None:
    """Counts an action that the caller has just requested: it, what it is about, given as plan and person, and the
    messages of its first step. Those of later steps have no caller, so that what it is about limits them."""
    rows = conn.execute(_OF_ACTION, {"ids": list(notification_ids)}).all()
    of_plan = _Window(_subject("plan", *about), HOUR_S, limits.per_recipient)
    recipients = _of_recipients(limits, [(row.notification_type, row.recipient) for row in rows])
    _count(conn, [*_of_caller(limits, caller_id), of_plan, *recipients])


def _of_caller(limits: SendingLimits, caller_id: int) -> list[_Window]:
    subject = _subject("caller", caller_id)
    return [_Window(subject, MINUTE_S, limits.per_minute), _Window(subject, DAY_S, limits.per_day)]


def _of_recipients(limits: SendingLimits, addresses: Iterable[tuple[str, str]]) -> list[_Window]:
    return [
        _Window(_subject("recipient", type_, recipient.casefold()), HOUR_S, limits.per_recipient)
        for type_, recipient in addresses
        # An entry of the audit trail disturbs nobody.
        if traits_of(type_).address is not AddressForm.LINE
    ]


def _subject(*parts: object) -> UUID:
    """A digest, so that the table holds no addresses."""
    return UUID(bytes=hashlib.sha256(" ".join(map(str, parts)).encode()).digest()[:16])


def _count(conn: Connection, windows: Sequence[_Window]) -> None:
    values = {
        "subjects": [window.subject for window in windows],
        "lengths": [window.length_s for window in windows],
        "most": [window.most for window in windows],
    }
    wait_s = conn.execute(_COUNT, values).scalar_one()
    if wait_s is not None:
        # Does not say which limit it was: whoever asks would learn what others send to a recipient.
        raise SendingLimited("Too many messages for now.", retry_after_s=max(1, wait_s))
