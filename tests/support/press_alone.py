"""A press whose first offer has failed: the task is there alone, and due."""

from uuid import UUID

from app.matching import deeds
from app.matching.cascade import make_task
from app.matching.contract import NewTask
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.stores import Store
from app.users.models import Caller


def press_alone(store: Store, elder: Caller, rules: MatchingRules, key: str | None = None) -> tuple[UUID, bool]:
    """The id of the task, and whether this press made it."""
    search = deeds.press(store, elder, NewTask(elder.id), key, rules)
    if isinstance(search, UUID):
        return search, False
    return make_task(store, search, None, rules).task.id, True
