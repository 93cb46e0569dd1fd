import itertools

import pytest

from app.matching.states import (
    HELD,
    OFFER_TRANSITIONS,
    OPEN,
    TASK_TRANSITIONS,
    IllegalTaskTransition,
    OfferState,
    TaskStatus,
    check_offer_transition,
    check_task_transition,
    offer_sources,
    task_sources,
)
from app.matching.store.state_conditions import may_become_offer, may_become_task, new_offer, new_task

TASKS = {
    "None PENDING",
    "PENDING ASSIGNED",
    "PENDING TIMED_OUT",
    "PENDING CANCELLED",
    "ASSIGNED STARTED",
    "ASSIGNED PENDING",
    "ASSIGNED CANCELLED",
    "STARTED COMPLETED",
    "STARTED PENDING",
    "STARTED CANCELLED",
}

OFFERS = {
    "None PENDING",
    "None SKIPPED",
    "None ACCEPTED",
    "PENDING ACCEPTED",
    "PENDING REJECTED",
    "PENDING EXPIRED",
    "PENDING WITHDRAWN",
    "ACCEPTED RELEASED",
    # by a coordinator's hand
    "REJECTED ACCEPTED",
    "EXPIRED ACCEPTED",
    "WITHDRAWN ACCEPTED",
    "RELEASED ACCEPTED",
    "SKIPPED ACCEPTED",
}


@pytest.mark.parametrize(("current", "target"), list(itertools.product([None, *TaskStatus], TaskStatus)))
def test_transitions_of_a_task(current: TaskStatus | None, target: TaskStatus) -> None:
    if f"{current} {target}" in TASKS:
        check_task_transition(current, target)
    else:
        with pytest.raises(IllegalTaskTransition) as refusal:
            check_task_transition(current, target)
        assert refusal.value.extra == {"status": current}
        assert refusal.value.code == "illegal_step"


@pytest.mark.parametrize(("current", "target"), list(itertools.product([None, *OfferState], OfferState)))
def test_transitions_of_an_offer(current: OfferState | None, target: OfferState) -> None:
    if f"{current} {target}" in OFFERS:
        check_offer_transition(current, target)
    else:
        with pytest.raises(IllegalTaskTransition) as refusal:
            check_offer_transition(current, target)
        assert refusal.value.extra == {"state": current}


def test_every_state_has_its_transitions() -> None:
    assert set(TASK_TRANSITIONS) == {None, *TaskStatus}
    assert set(OFFER_TRANSITIONS) == {None, *OfferState}


def test_sources_are_the_table_read_backwards() -> None:
    assert {f"{source} {target}" for target in TaskStatus for source in task_sources(target)} | {
        "None PENDING"
    } == TASKS
    new = {text for text in OFFERS if text.startswith("None")}
    assert {f"{source} {target}" for target in OfferState for source in offer_sources(target)} | new == OFFERS


def test_statements_say_the_literals_of_the_partial_indexes() -> None:
    assert may_become_offer(OfferState.EXPIRED) == "state = 'PENDING'"
    assert may_become_offer(OfferState.RELEASED, "o.state") == "o.state = 'ACCEPTED'"
    assert may_become_task(TaskStatus.TIMED_OUT) == "status = 'PENDING'"
    assert may_become_task(TaskStatus.PENDING) == "status IN ('ASSIGNED', 'STARTED')"


def test_a_row_begins_in_a_state_in_which_rows_may_begin() -> None:
    assert (new_task(TaskStatus.PENDING), new_offer(OfferState.SKIPPED)) == ("'PENDING'", "'SKIPPED'")
    with pytest.raises(IllegalTaskTransition):
        new_offer(OfferState.EXPIRED)


def test_open_tasks_are_those_that_can_go_on() -> None:
    assert {status for status, targets in TASK_TRANSITIONS.items() if status and targets} == OPEN
    assert OPEN - {TaskStatus.PENDING} == HELD
