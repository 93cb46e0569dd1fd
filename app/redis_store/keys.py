"""Every key and channel that lives in Redis.

| key                             | type       | content                                  | lifetime              |
|---------------------------------|------------|------------------------------------------|-----------------------|
| `task_candidates:<task id>`     | list       | ids of candidates, next first            | 1 hour                |
| `pending_assignment:<task id>`  | string     | id of the student who is being asked     | as long as the offer  |
| `offer_deadlines`               | sorted set | task ids by the time they are due, in ms | no limit              |
| `task_version:<task id>`        | string     | version of the row in the keys above     | 15 minutes            |
| `clockwork_complete`            | string     | "1"; any other value means that keys may | no limit              |
|                                 |            | be missing and have to be written again  |                       |
| `breaker:<name>`                | hash       | counts and state of a circuit breaker,   | 1 hour                |
|                                 |            | marks of recipients that failed          |                       |
| `limit:…`                       | list       | times of calls, by the library `limits`  | 1 minute              |
| `<prefix>.action.requested`     | stream     | actions that other services request      | set by its writer     |
| `<prefix>.action.executed` …    | stream     | results, for other services              | the last 100,000      |
| `in_app:<user id>`              | channel    | hint that an in-app notification waits   | not stored            |
| `event_heads`                   | channel    | newest position of events, as a hint     | not stored            |
"""

from uuid import UUID

CANDIDATES_TTL_S = 3600
VERSION_TTL_S = 900
"""Redis accepts an old version as new only from a process that was stopped for longer than this."""
DEADLINES = "offer_deadlines"
SENTINEL = "clockwork_complete"
PENDING_PREFIX = "pending_assignment:"
CANDIDATES_PREFIX = "task_candidates:"
VERSION_PREFIX = "task_version:"


EVENT_HEADS = "event_heads"
BREAKER_PREFIX = "breaker:"
BREAKER_TTL_S = 3600


def breaker(name: str) -> str:
    return f"{BREAKER_PREFIX}{name}"


def in_app(user_id: int) -> str:
    return f"in_app:{user_id}"


def candidates(task_id: UUID) -> str:
    return f"{CANDIDATES_PREFIX}{task_id}"


def pending(task_id: UUID) -> str:
    return f"{PENDING_PREFIX}{task_id}"


def version(task_id: UUID) -> str:
    return f"{VERSION_PREFIX}{task_id}"


def expired_channel(database: int) -> str:
    return f"__keyevent@{database}__:expired"


def task_of_pending_key(key: str) -> UUID | None:
    """The task whose pending key this is; None for any other key."""
    return parse_task_id(key.removeprefix(PENDING_PREFIX)) if key.startswith(PENDING_PREFIX) else None


def parse_task_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
