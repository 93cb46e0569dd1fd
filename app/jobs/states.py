"""The state machine of a job. Pure. Every statement that changes a job's status reads the states that it may start from
in this table."""

from enum import StrEnum

from app.foundation.state_machine import TransitionTable, sources


class JobStatus(StrEnum):
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


S = JobStatus

LIVE = frozenset({S.QUEUED, S.RUNNING})
ENDED = frozenset(S) - LIVE

# RUNNING to RUNNING: another runner claims a job whose lease has run out, with a higher fence.
# RUNNING to QUEUED: a runner that drains gives a job back.
JOB_TRANSITIONS: TransitionTable[JobStatus] = {
    None: frozenset({S.QUEUED}),
    S.QUEUED: frozenset({S.RUNNING, S.CANCELLED}),
    S.RUNNING: frozenset({S.RUNNING, S.QUEUED, S.SUCCEEDED, S.FAILED, S.CANCELLED}),
    S.SUCCEEDED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELLED: frozenset(),
}


def _from(*targets: JobStatus) -> frozenset[JobStatus]:
    return frozenset(sources(JOB_TRANSITIONS, *targets))


CLAIMABLE = _from(S.RUNNING)
RECORDED_FROM = _from(S.SUCCEEDED, S.FAILED)
GIVEN_BACK_FROM = _from(S.QUEUED)
CANCELLED_AT_ONCE = _from(S.CANCELLED) - RECORDED_FROM
"""Nothing runs yet that would have to stop first."""
