"""Verifies webhooks: a webhook that answers a signed challenge is verified; otherwise its verification has failed."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.delivery.directory.states import FAILABLE, VERIFIABLE
from app.delivery.messages.values import CHALLENGE, Ended

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


def settle_challenges(conn: Connection, ended: Sequence[Ended]) -> None:
    """A follower: sets the verify status of the webhooks whose challenge has ended."""
    ids = [notification.id for notification in ended if CHALLENGE in notification.metadata]
    if ids:
        conn.execute(_SETTLE, {"ids": ids})
