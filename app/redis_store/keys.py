"""Every key and channel that lives in Redis.

| key                             | type       | holds                                    | lives                 |
|---------------------------------|------------|------------------------------------------|-----------------------|
| `task_candidates:<task id>`     | list       | ids of candidates, next first            | 1 hour                |
| `pending_assignment:<task id>`  | string     | id of the student who is being asked     | as long as the offer  |
| `offer_deadlines`               | sorted set | task id by the time of its next step, ms | always                |
| `clockwork_complete`            | string     | "1"; anything else means that something  | always                |
|                                 |            | is missing here and has to be rebuilt    |                       |
"""

from uuid import UUID

CANDIDATES_TTL_S = 3600
DEADLINES = "offer_deadlines"
SENTINEL = "clockwork_complete"
PENDING_PREFIX = "pending_assignment:"


def candidates(task_id: UUID) -> str:
    return f"task_candidates:{task_id}"


def pending(task_id: UUID) -> str:
    return f"{PENDING_PREFIX}{task_id}"


def expired_channel(database: int) -> str:
    return f"__keyevent@{database}__:expired"


def task_of_pending_key(key: str) -> UUID | None:
    """The task whose pending key this is; None for any other key, whoever wrote it."""
    if not key.startswith(PENDING_PREFIX):
        return None
    try:
        return UUID(key.removeprefix(PENDING_PREFIX))
    except ValueError:
        return None
