"""The transition tables of actions, steps, dead letters and verifications, and that the SQL follows them."""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import TextClause

from app.delivery.actions.states import ACTION_TRANSITIONS, STEP_TRANSITIONS, UNENDED, ActionStatus, StepState
from app.delivery.actions.steps import Run, StepRun
from app.delivery.directory import challenges
from app.delivery.directory.states import VERIFY_TRANSITIONS, VerifyStatus, initial_status, status_at_new_address
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letter_states import DEAD_LETTER_TRANSITIONS, DeadLetterStatus
from app.delivery.messages.models import dead_letters as dead_letters_table
from app.foundation.state_machine import IllegalTransition, check_transition, sources

APP = Path(__file__).resolve().parents[3] / "app"
TABLES: list[Mapping[Any, frozenset[Any]]] = [
    ACTION_TRANSITIONS,
    STEP_TRANSITIONS,
    DEAD_LETTER_TRANSITIONS,
    VERIFY_TRANSITIONS,
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: type(next(iter(table))).__name__)
def test_every_state_has_its_transitions(table: Mapping[StrEnum, frozenset[StrEnum]]) -> None:
    assert set(table) == set(type(next(iter(table))))


def test_missing_transition_is_a_programming_error() -> None:
    with pytest.raises(IllegalTransition):
        check_transition(ACTION_TRANSITIONS, ActionStatus.DONE, ActionStatus.RUNNING)
    with pytest.raises(IllegalTransition):
        StepRun(1, "push", state=StepState.SENT).moved_to(StepState.RUNNING)


def test_writing_the_same_state_again_is_no_transition() -> None:
    check_transition(STEP_TRANSITIONS, StepState.SENT, StepState.SENT)


def test_only_unended_steps_can_be_cancelled() -> None:
    assert set(sources(STEP_TRANSITIONS, StepState.CANCELLED)) == UNENDED


def test_closed_dead_letter_stays_closed() -> None:
    assert {state for state, targets in DEAD_LETTER_TRANSITIONS.items() if targets} == {DeadLetterStatus.OPEN}


def test_only_a_failed_action_runs_again() -> None:
    assert sources(ACTION_TRANSITIONS, ActionStatus.RUNNING) == (ActionStatus.FAILED,)


def test_verified_channel_loses_its_status_only_to_a_new_address() -> None:
    assert VERIFY_TRANSITIONS[VerifyStatus.VERIFIED] == {VerifyStatus.PENDING}


def test_new_action_runs_and_a_new_dead_letter_is_open() -> None:
    assert Run(()).status is ActionStatus.RUNNING
    default = dead_letters_table.c.status.server_default
    assert getattr(default, "arg", None) == DeadLetterStatus.OPEN


@pytest.mark.parametrize(
    ("channel_type", "status"), [("email", "pending"), ("webhook", "pending"), ("in_app", "verified")]
)
def test_new_address_needs_verification_unless_the_channel_is_our_own(channel_type: str, status: str) -> None:
    assert initial_status(channel_type) == status
    assert {status_at_new_address(channel_type, current) for current in VerifyStatus} == {status}


# Each statement that closes dead letters, with the status that it writes.
STATEMENTS: dict[str, tuple[TextClause, DeadLetterStatus]] = {
    "cover": (dead_letters._COVER, DeadLetterStatus.COVERED),
    "redrive": (dead_letters._CLOSE_REDRIVEN, DeadLetterStatus.REDRIVEN),
    "redrive a step": (dead_letters._CLOSE_REDRIVEN_STEP, DeadLetterStatus.REDRIVEN),
    "discard one": (dead_letters._DISCARD_ONE, DeadLetterStatus.DISCARDED),
    "discard": (dead_letters._DISCARD_MATCHING, DeadLetterStatus.DISCARDED),
}
_UPDATE = re.compile(r"UPDATE dead_letters(?: d)? SET status = '(\w+)'")


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement_closes_dead_letters_as_the_table_allows(name: str) -> None:
    statement, target = STATEMENTS[name]
    sql = str(statement)
    assert _UPDATE.findall(sql) == [target]
    allowed = ", ".join(f"'{state}'" for state in sources(DEAD_LETTER_TRANSITIONS, target))
    assert f"status IN ({allowed})" in sql[sql.index("UPDATE") :]


def test_no_other_statement_changes_the_status_of_a_dead_letter() -> None:
    found = [path.name for path in APP.rglob("*.py") for _ in re.findall(r"UPDATE dead_letters\b", path.read_text())]
    assert found == ["dead_letters.py"] * 4


def test_challenge_settles_a_verification_as_the_table_allows() -> None:
    for target in (VerifyStatus.VERIFIED, VerifyStatus.FAILED):
        allowed = ", ".join(f"'{state}'" for state in sources(VERIFY_TRANSITIONS, target))
        assert f"c.verify_status IN ({allowed})" in str(challenges._SETTLE)
