"""What coordinators do about a task that nobody took."""

from uuid import UUID

from app.matching.follow_up import FollowUp
from app.matching.rules.errors import TaskNotFound
from app.matching.rules.states import IllegalTaskTransition, TaskOutcome, TaskStatus
from app.matching.store.stores import Store
from app.users.models import Caller


def say_outcome(store: Store, caller: Caller, task_id: UUID, outcome: TaskOutcome, note: str | None) -> FollowUp:
    """The task leaves the board. Of two coordinators the later one counts, and the audit trail has both."""
    task = store.lock_task(task_id)
    if task is None:
        raise TaskNotFound
    if task.status is not TaskStatus.TIMED_OUT:
        raise IllegalTaskTransition(
            f"Only of a task that nobody took it is said what became of it; this one is {task.status}.",
            status=task.status,
        )
    store.say_outcome(task_id, outcome, note, caller.id)
    return FollowUp()
