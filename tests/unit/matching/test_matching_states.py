import ast
import itertools
import re
from collections.abc import Iterator

import pytest

from app.foundation.state_machine import IllegalTransition, sources
from app.matching.rules.states import (
    HELD,
    OFFER_TRANSITIONS,
    OPEN,
    TASK_TRANSITIONS,
    IllegalTaskTransition,
    OfferState,
    TaskStatus,
    check_offer_transition,
    check_task_transition,
    may_become_offer,
    may_become_task,
    new_offer,
    new_task,
)
from tests.policy.modules import modules

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
    assert {f"{source} {target}" for target in TaskStatus for source in sources(TASK_TRANSITIONS, target)} | {
        "None PENDING"
    } == TASKS
    new = {text for text in OFFERS if text.startswith("None")}
    assert {
        f"{source} {target}" for target in OfferState for source in sources(OFFER_TRANSITIONS, target)
    } | new == OFFERS


def test_statements_say_the_literals_of_the_partial_indexes() -> None:
    assert may_become_offer(OfferState.EXPIRED) == "state IN ('PENDING')"
    assert may_become_offer(OfferState.RELEASED, "o.state") == "o.state IN ('ACCEPTED')"
    assert may_become_task(TaskStatus.TIMED_OUT) == "status IN ('PENDING')"
    assert may_become_task(TaskStatus.PENDING) == "status IN ('ASSIGNED', 'STARTED')"


def test_a_row_begins_in_a_state_in_which_rows_may_begin() -> None:
    assert (new_task(TaskStatus.PENDING), new_offer(OfferState.SKIPPED)) == ("'PENDING'", "'SKIPPED'")
    with pytest.raises(IllegalTransition):
        new_offer(OfferState.EXPIRED)


def test_open_tasks_are_those_that_can_go_on() -> None:
    assert {status for status, targets in TASK_TRANSITIONS.items() if status and targets} == set(OPEN)
    assert set(OPEN) - {TaskStatus.PENDING} == set(HELD)


# ---- every statement ----

Named = re.compile(r"'\{(?:TaskStatus|OfferState)\.(\w+)\}'")
CHANGE = re.compile(r"(?:UPDATE|INSERT INTO) (?:tasks|offers)\b")
STATE = re.compile(r"\b(?:status|state) = (\S+?),|\(task_id, student_id, state,|\(id, status,", re.DOTALL)


def statements() -> Iterator[tuple[str, str]]:
    """The SQL of matching, with the expressions in it as they are written, and the function or module around it."""
    for module in modules("matching"):
        for scope in module.tree.body:
            members = scope.body if isinstance(scope, ast.ClassDef) else [scope]
            for member in members:
                around = ast.unparse(member)
                yield from ((sql, around) for sql in texts(member))


def texts(member: ast.AST) -> Iterator[str]:
    nodes = list(ast.walk(member))
    parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.value


def test_no_statement_spells_a_state() -> None:
    spelled = re.compile("'(" + "|".join({*TaskStatus, *OfferState}) + ")'")
    assert [sql for sql, _ in statements() if spelled.search(sql)] == []


def changes_of_state() -> list[tuple[str, str]]:
    return [(sql, around) for sql, around in statements() if CHANGE.search(sql) and STATE.search(sql)]


def test_every_statement_that_changes_a_state_takes_the_transition_from_its_table() -> None:
    """Either the states from which the row may come are read from the table, or the function checks the transition of
    the row that it has read. A row begins in a state in which rows may begin."""
    wrong: list[str] = []
    for sql, around in changes_of_state():
        named = Named.search(sql)
        from_table = named and re.search(rf"may_become_(?:task|offer)\(\w+\.{named[1]}\b", sql)
        begins = re.search(r"new_(?:task|offer)\(", sql)
        checked = "check_offer_transition(" in around or "transition: Transition" in around
        if not (from_table or checked or (begins and named is None)):
            wrong.append(sql)
    assert wrong == []
    assert len(changes_of_state()) == 9
