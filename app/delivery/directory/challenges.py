"""A webhook is verified by answering a signed challenge: the notification that carries it decides by how it ends."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.delivery.messages.values import CHALLENGE, Ended

# Only the challenge that was sent last, and only for the address it went to: what was entered since then has not
# answered. A challenge that failed is kept, because an operator may have it tried anew.
_SETTLE = text(
    """
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
      FROM ended WHERE c.id = ended.channel_id
    """
)


def settle_challenges(conn: Connection, ended: Sequence[Ended]) -> None:
    """A follower: verifies the webhooks whose challenge has been answered."""
    ids = [one.id for one in ended if CHALLENGE in one.metadata]
    if ids:
        conn.execute(_SETTLE, {"ids": ids})
