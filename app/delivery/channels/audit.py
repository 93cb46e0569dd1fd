"""Appends notifications to the audit trail. There are no retries: the try of two seconds is repeated only if the
database could not be reached, because nothing was written then."""

from collections.abc import Sequence

from app.db.database import Database, limit_statements
from app.delivery.channels import audit_trail
from app.delivery.channels.base import OutgoingMessage, SingleProvider, Wiring
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.values import NotificationType, Outcome

TYPES = (NotificationType.AUDIT,)
POLICY = RetryPolicy(timeout_s=2.0, retries=0)
SETTINGS = names_of_settings(TYPES[0])


# The statements of one call: set the time limit, take the lock, read the end of the chain, insert the entries.
_STATEMENTS = 4


class AuditChannel(SingleProvider):
    batch_size = 50

    def __init__(self, db: Database, *, policy: RetryPolicy = POLICY) -> None:
        super().__init__("audit", TYPES, policy)
        self._db = db

    @property
    def longest_s(self) -> float:
        return _STATEMENTS * self.policy.timeout_s

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        with self._db.transaction() as conn:
            limit_statements(conn, self.policy.timeout_s)
            audit_trail.append(conn, [message.notification for message in messages])
        return [SendResult(Outcome.SENT, provider_message_id=f"audit:{message.id}") for message in messages]


def open_channel(wiring: Wiring) -> AuditChannel:
    return AuditChannel(wiring.db, policy=policy_of(wiring.settings, TYPES[0], POLICY))
