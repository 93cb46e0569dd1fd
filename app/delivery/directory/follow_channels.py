"""A follower: switches off the channels of recipients who want no more messages, empties codes that were sent, and
verifies webhooks. A webhook that answers a signed challenge is verified; otherwise its verification has failed."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.delivery.directory.states import FAILABLE, VERIFIABLE
from app.delivery.messages.values import CHALLENGE, CODE, VERIFICATION, Follower, NotificationChange

# Also locks the channels whose challenge has ended, so that all channels are locked in the order of their ids. They are
# read from the notifications, because a change does not name a channel that was disabled before the claim.
_SWITCH_OFF = text(
    """
    WITH held AS MATERIALIZED (
        SELECT id FROM recipient_channels
         WHERE id = ANY(:ids) OR id IN (SELECT n.channel_id FROM notifications n WHERE n.id = ANY(:challenges))
         ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE recipient_channels c SET enabled = false, updated_at = clock_timestamp()
      FROM held WHERE c.id = held.id AND c.id = ANY(:ids) AND c.enabled
    """
)
# A caller's own message may have the same metadata, but no channel.
_FORGET_CODES = text(
    """
    UPDATE notifications SET subject = '', body = ''
     WHERE id = ANY(:ids) AND status = 'SENT' AND channel_id IS NOT NULL
    """
)
# Only the newest challenge counts, and only if the channel still has the address to which the challenge was sent. After
# a failed challenge the verification is kept, because an operator may redrive the challenge.
_SETTLE = text(
    f"""
    WITH ended AS (
        SELECT v.channel_id, n.status = 'SENT' AS answered
          FROM channel_verifications v
          JOIN notifications n ON n.id = v.notification_id AND n.channel_id = v.channel_id
          JOIN recipient_channels c ON c.id = v.channel_id AND c.target = n.recipient AND c.retired_at IS NULL
         WHERE n.id = ANY(:ids) AND n.status IN ('SENT', 'DEAD')
           AND v.expires_at > clock_timestamp()
         ORDER BY v.channel_id FOR NO KEY UPDATE OF c
    ), done AS (
        DELETE FROM channel_verifications v USING ended WHERE v.channel_id = ended.channel_id AND ended.answered
    )
    UPDATE recipient_channels c
       SET verify_status = CASE WHEN ended.answered THEN 'verified' ELSE 'failed' END, updated_at = clock_timestamp()
      FROM ended
     WHERE c.id = ended.channel_id
       AND CASE WHEN ended.answered THEN {one_of("c.verify_status", VERIFIABLE)}
                ELSE {one_of("c.verify_status", FAILABLE)} END
    """
)


def follow_channels(conn: Connection, changes: Sequence[NotificationChange]) -> None:
    refused = [change.channel_id for change in changes if change.is_refused and change.channel_id is not None]
    challenges = [change.id for change in changes if _ends_challenge(change)]
    codes = sorted(change.id for change in changes if _ends_code(change))
    if codes:
        conn.execute(_FORGET_CODES, {"ids": codes})
    if refused:
        conn.execute(_SWITCH_OFF, {"ids": refused, "challenges": challenges})
    if challenges:
        conn.execute(_SETTLE, {"ids": challenges})


def _ends_challenge(change: NotificationChange) -> bool:
    return change.has_ended and CHALLENGE in change.metadata


def _ends_code(change: NotificationChange) -> bool:
    return change.has_ended and change.metadata.get(VERIFICATION) == CODE


FOLLOW_CHANNELS = Follower(
    lambda change: change.is_refused or _ends_challenge(change) or _ends_code(change), follow_channels
)
