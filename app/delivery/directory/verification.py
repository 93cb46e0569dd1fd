"""Verifies that a channel reaches its recipient.

A person gets a code through the channel and returns it. The text with the code is emptied when it was sent. A webhook
answers a challenge, and the end of the notification with the challenge decides (see `follow_channels`). A channel has
at most one running verification, which stores only a digest of the code; a transaction that changes it locks the
channel's row. The pause between two codes applies to the address, because an address may be in the directory several
times, and may be removed and added again.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, text

from app.db.tables import TableRow
from app.delivery.directory.errors import (
    AlreadyVerified,
    ChannelDisabled,
    VerificationExpired,
    VerificationNeedsNoCode,
    VerificationNotRunning,
    VerificationTooSoon,
    VerificationTriesUsedUp,
    WrongVerificationCode,
)
from app.delivery.directory.service import CHANNELS, PROFILES, WEBHOOK
from app.delivery.directory.states import VERIFY_TRANSITIONS, VerifyStatus
from app.delivery.messages.submit import NewSubmission, submit
from app.delivery.messages.values import CHALLENGE, CODE, VERIFICATION, NotificationType, Priority
from app.delivery.words.rendering import RenderFailed, Words, render
from app.delivery.words.shipped_templates import TEMPLATES, VERIFICATION_CODE
from app.delivery.words.templates import choose_template, read_templates
from app.foundation.errors import Conflict
from app.foundation.ids import earliest_id
from app.foundation.state_machine import IllegalTransition, sources

LIFE_S = 600
PAUSE_S = 60
TRIES = 5


@dataclass(frozen=True)
class Started:
    notification_id: UUID
    expires_at: datetime
    channel_type: str
    target: str = field(repr=False)


_RUNNING = text(
    """
    SELECT notification_id, digest, tries_left, expires_at <= clock_timestamp() AS expired
      FROM channel_verifications WHERE channel_id = :channel_id
    """
)
_LOCK_ADDRESS = text("SELECT pg_advisory_xact_lock(hashtextextended('verification ' || :target, 0))")
# Ids increase with time, so the newest notifications are at one end of the primary key.
_PAUSE_LEFT_S = text(
    """
    SELECT ceil(:pause_s - extract(epoch FROM clock_timestamp() - max(created_at)))::int
      FROM notifications
     WHERE id >= :since AND notification_type = :type AND recipient = :target AND metadata ? 'verification'
       AND channel_id IS NOT NULL AND created_at > clock_timestamp() - make_interval(secs => :pause_s)
    """
)
_BEGIN = text(
    """
    INSERT INTO channel_verifications (channel_id, notification_id, digest, tries_left, expires_at)
    VALUES (:channel_id, :notification_id, :digest, :tries, :expires_at)
    ON CONFLICT (channel_id) DO UPDATE
       SET notification_id = excluded.notification_id, digest = excluded.digest,
           tries_left = excluded.tries_left, expires_at = excluded.expires_at
    """
)
_SET_STATUS = text(
    "UPDATE recipient_channels SET verify_status = :status, updated_at = clock_timestamp()"
    " WHERE id = :channel_id AND verify_status = ANY(:sources)"
)
_COUNT_TRY = text("UPDATE channel_verifications SET tries_left = :left WHERE channel_id = :channel_id")
_END = text("DELETE FROM channel_verifications WHERE channel_id = :channel_id")
_EXPIRES_AT = text("SELECT clock_timestamp() + make_interval(secs => :life_s)")


def start_verification(conn: Connection, channel_id: int) -> Started:
    channel = CHANNELS.get(conn, channel_id, lock=True)
    if channel.verify_status == VerifyStatus.VERIFIED:
        raise AlreadyVerified
    if not channel.enabled:
        raise ChannelDisabled
    pause_left_s = _pause_left_s(conn, channel)
    if pause_left_s:
        raise VerificationTooSoon(pause_left_s)
    expires_at: datetime = conn.execute(_EXPIRES_AT, {"life_s": LIFE_S}).scalar_one()
    secret, new = _message(conn, channel, expires_at)
    notification_id = submit(conn, new).id
    values = {
        "channel_id": channel_id,
        "notification_id": notification_id,
        "digest": _digest(notification_id, secret),
        "tries": TRIES,
        "expires_at": expires_at,
    }
    conn.execute(_BEGIN, values)
    _set_status(conn, channel, VerifyStatus.PENDING)
    return Started(notification_id, expires_at, channel.channel_type, channel.target)


def _pause_left_s(conn: Connection, channel: TableRow) -> int:
    conn.execute(_LOCK_ADDRESS, {"target": channel.target})
    now: datetime = conn.execute(text("SELECT clock_timestamp()")).scalar_one()
    values = {
        "since": earliest_id(now - 2 * timedelta(seconds=PAUSE_S)),
        "type": channel.channel_type.upper(),
        "target": channel.target,
        "pause_s": PAUSE_S,
    }
    return conn.execute(_PAUSE_LEFT_S, values).scalar_one() or 0


def _running(conn: Connection, channel_id: int) -> RowMapping | None:
    return conn.execute(_RUNNING, {"channel_id": channel_id}).mappings().one_or_none()


def _message(conn: Connection, channel: TableRow, expires_at: datetime) -> tuple[str, NewSubmission]:
    is_webhook = channel.channel_type == WEBHOOK
    secret = secrets.token_urlsafe(32) if is_webhook else f"{secrets.randbelow(1_000_000):06}"
    words = Words("", "") if is_webhook else _words(conn, channel, secret)
    metadata: dict[str, Any] = {VERIFICATION: CHALLENGE, CHALLENGE: secret} if is_webhook else {VERIFICATION: CODE}
    if "addressKind" in channel.target_meta:
        metadata["addressKind"] = channel.target_meta["addressKind"]
    return secret, NewSubmission(
        notification_type=NotificationType(channel.channel_type.upper()),
        recipient=channel.target,
        subject=words.subject,
        body=words.body,
        priority=Priority.HIGH,
        metadata=metadata,
        expires_at=expires_at,
        channel_id=channel.id,
        institution_id=_institution(conn, channel),
    )


_INSTITUTION = text(
    """
    SELECT coalesce(p.institution_id, u.institution_id)
      FROM recipient_profiles p LEFT JOIN users u ON u.id = p.user_id WHERE p.id = :profile_id
    """
)


def _institution(conn: Connection, channel: TableRow) -> int | None:
    return conn.execute(_INSTITUTION, {"profile_id": channel.profile_id}).scalar_one()


def _words(conn: Connection, channel: TableRow, code: str) -> Words:
    locale = PROFILES.get(conn, channel.profile_id).locale
    variables = {"code": code, "minutes": LIFE_S // 60}
    template = choose_template(read_templates(conn, [VERIFICATION_CODE]), VERIFICATION_CODE, locale)
    try:
        words = render(template, variables) if template is not None else None
    except RenderFailed:
        words = None
    # An operator may have removed the code from the template. The shipped template contains it.
    if words is None or code not in words.body:
        words = render(TEMPLATES[VERIFICATION_CODE][locale], variables)
    return words


def confirm_verification(conn: Connection, channel_id: int, code: str) -> Conflict | None:
    """Returns the refusal instead of raising it, because the count of wrong codes has to be committed.

    Confirming a verified channel again has no effect.
    """
    channel = CHANNELS.get(conn, channel_id, lock=True)
    if channel.verify_status == VerifyStatus.VERIFIED:
        return None
    running = _running(conn, channel_id)
    refusal = _refusal(channel, running)
    if refusal is not None or running is None:
        return refusal
    if hmac.compare_digest(running["digest"], _digest(running["notification_id"], code)):
        conn.execute(_END, {"channel_id": channel_id})
        _set_status(conn, channel, VerifyStatus.VERIFIED)
        return None
    return _count_try(conn, channel, running["tries_left"] - 1)


def _refusal(channel: TableRow, running: RowMapping | None) -> Conflict | None:
    if channel.channel_type == WEBHOOK:
        return VerificationNeedsNoCode()
    if running is None:
        return VerificationNotRunning()
    if running["expired"]:
        return VerificationExpired()
    return VerificationTriesUsedUp() if running["tries_left"] == 0 else None


def _count_try(conn: Connection, channel: TableRow, tries_left: int) -> Conflict:
    conn.execute(_COUNT_TRY, {"left": tries_left, "channel_id": channel.id})
    if tries_left == 0:
        _set_status(conn, channel, VerifyStatus.FAILED)
        return VerificationTriesUsedUp()
    return WrongVerificationCode(tries_left)


def _set_status(conn: Connection, channel: TableRow, status: VerifyStatus) -> None:
    """The caller has locked the channel."""
    if channel.verify_status == status:
        return
    values = {"channel_id": channel.id, "status": status, "sources": list(sources(VERIFY_TRANSITIONS, status))}
    if conn.execute(_SET_STATUS, values).rowcount != 1:
        raise IllegalTransition(f"A verification that is {channel.verify_status} cannot become {status}.")


def _digest(notification_id: UUID, secret: str) -> bytes:
    """Slow on purpose: whoever reads the table would try the million codes for longer than any of them is good."""
    return hashlib.scrypt(secret.encode(), salt=notification_id.bytes, n=2**14, r=8, p=1, dklen=32)
