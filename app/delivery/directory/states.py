"""The state machine of a recipient channel's verification. Pure."""

from enum import StrEnum

from app.delivery.messages.traits import traits_of
from app.foundation.state_machine import TransitionTable, check_transition, sources


class VerifyStatus(StrEnum):
    PENDING = "pending"
    VERIFIED = "verified"
    FAILED = "failed"


# VERIFIED to PENDING: the address was changed. FAILED to PENDING: the address was changed, or a new verification was
# started. FAILED to VERIFIED: an operator redrove the challenge of a webhook, and the webhook answered it. FAILED to
# FAILED: the redriven challenge failed again.
VERIFY_TRANSITIONS: TransitionTable[VerifyStatus] = {
    None: frozenset({VerifyStatus.PENDING, VerifyStatus.VERIFIED}),
    VerifyStatus.PENDING: frozenset({VerifyStatus.VERIFIED, VerifyStatus.FAILED}),
    VerifyStatus.VERIFIED: frozenset({VerifyStatus.PENDING}),
    VerifyStatus.FAILED: frozenset({VerifyStatus.PENDING, VerifyStatus.VERIFIED, VerifyStatus.FAILED}),
}

VERIFIABLE = sources(VERIFY_TRANSITIONS, VerifyStatus.VERIFIED)
FAILABLE = sources(VERIFY_TRANSITIONS, VerifyStatus.FAILED)


def initial_status(channel_type: str) -> VerifyStatus:
    return VerifyStatus.PENDING if traits_of(channel_type).needs_verification else VerifyStatus.VERIFIED


def status_at_new_address(channel_type: str, current: VerifyStatus) -> VerifyStatus:
    """The status after the address has changed. A verification of the old address does not count for the new one."""
    status = initial_status(channel_type)
    check_transition(VERIFY_TRANSITIONS, current, status)
    return status
