import itertools

import pytest

from app.matching.states import (
    HELD,
    OFFER_STEPS,
    OPEN,
    TASK_STEPS,
    IllegalStep,
    OfferState,
    TaskStatus,
    check_offer_step,
    check_task_step,
)

TASKS = {
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


@pytest.mark.parametrize(("current", "target"), list(itertools.product(TaskStatus, TaskStatus)))
def test_steps_of_a_task(current: TaskStatus, target: TaskStatus) -> None:
    if f"{current} {target}" in TASKS:
        check_task_step(current, target)
    else:
        with pytest.raises(IllegalStep) as refusal:
            check_task_step(current, target)
        assert refusal.value.extra == {"status": current}
        assert refusal.value.code == "illegal_step"


@pytest.mark.parametrize(("current", "target"), list(itertools.product(OfferState, OfferState)))
def test_steps_of_an_offer(current: OfferState, target: OfferState) -> None:
    if f"{current} {target}" in OFFERS:
        check_offer_step(current, target)
    else:
        with pytest.raises(IllegalStep) as refusal:
            check_offer_step(current, target)
        assert refusal.value.extra == {"state": current}


def test_every_state_has_its_steps() -> None:
    assert set(TASK_STEPS) == set(TaskStatus)
    assert set(OFFER_STEPS) == set(OfferState)


def test_open_tasks_are_those_that_can_go_on() -> None:
    assert {status for status, steps in TASK_STEPS.items() if steps} == OPEN
    assert OPEN - {TaskStatus.PENDING} == HELD
