"""The transition tables of actions, steps, dead letters and verifications, and that all SQL keeps to them."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from uuid import UUID

import pytest
from sqlalchemy import Table, TextClause

from app.db.bites import Sweep
from app.db.months import SweepByMonth
from app.db.tables import EditableTable
from app.delivery.actions import transitions
from app.delivery.actions.context import Action
from app.delivery.actions.models import actions as actions_table
from app.delivery.actions.run import Decision
from app.delivery.actions.states import ACTION_TRANSITIONS, STEP_TRANSITIONS, UNENDED, ActionStatus, StepState
from app.delivery.actions.steps import Run, StepRun
from app.delivery.actions.transitions import ActionTransition
from app.delivery.directory import follow_channels, verification
from app.delivery.directory.models import recipient_channels
from app.delivery.directory.states import VERIFY_TRANSITIONS, VerifyStatus, initial_status, status_at_new_address
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letter_states import DEAD_LETTER_TRANSITIONS, DeadLetterStatus
from app.delivery.messages.models import dead_letters as dead_letters_table
from app.delivery.messages.models import notifications as notifications_table
from app.delivery.messages.states import NOTIFICATION_TRANSITIONS
from app.foundation.state_machine import IllegalTransition, check_transition, sources

APP = Path(__file__).resolve().parents[3] / "app"
TABLES: list[Mapping[Any, frozenset[Any]]] = [
    ACTION_TRANSITIONS,
    STEP_TRANSITIONS,
    DEAD_LETTER_TRANSITIONS,
    NOTIFICATION_TRANSITIONS,
    VERIFY_TRANSITIONS,
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: type(list(table)[1]).__name__)
def test_every_state_and_every_birth_has_its_transitions(table: Mapping[StrEnum | None, frozenset[StrEnum]]) -> None:
    assert set(table) == {None, *type(list(table)[1])}
    assert table[None]


def test_missing_transition_is_a_programming_error() -> None:
    with pytest.raises(IllegalTransition):
        check_transition(ACTION_TRANSITIONS, ActionStatus.DONE, ActionStatus.RUNNING)
    with pytest.raises(IllegalTransition):
        StepRun(1, "push", state=StepState.SENT).moved_to(StepState.RUNNING)


def test_writing_the_same_state_again_is_no_transition() -> None:
    check_transition(STEP_TRANSITIONS, StepState.SENT, StepState.SENT)


def test_only_unended_steps_can_be_cancelled() -> None:
    assert set(sources(STEP_TRANSITIONS, StepState.CANCELLED)) == UNENDED


def test_a_closed_dead_letter_stays_closed() -> None:
    assert {state for state, targets in DEAD_LETTER_TRANSITIONS.items() if state and targets} == {DeadLetterStatus.OPEN}


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
    "expire": (dead_letters._EXPIRE_LATE, DeadLetterStatus.EXPIRED),
    "expire with the action": (dead_letters._EXPIRE_OF_ACTIONS, DeadLetterStatus.EXPIRED),
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


def test_a_challenge_settles_a_verification_as_the_table_allows() -> None:
    for target in (VerifyStatus.VERIFIED, VerifyStatus.FAILED):
        allowed = ", ".join(f"'{state}'" for state in sources(VERIFY_TRANSITIONS, target))
        assert f"c.verify_status IN ({allowed})" in str(follow_channels._SETTLE)


def test_a_transition_of_an_action_starts_where_the_table_allows() -> None:
    sql = str(transitions._UPDATE)
    condition = re.search(r"a\.status = row\.status OR \(a\.status, row\.status\) IN \((.*?)\)\)", sql)
    assert condition is not None
    pairs = {(ActionStatus(old), ActionStatus(new)) for old, new in re.findall(r"\('(\w+)', '(\w+)'\)", condition[0])}
    assert pairs == {(old, new) for old, targets in ACTION_TRANSITIONS.items() if old for new in targets}


def test_an_action_that_the_table_does_not_let_begin_is_not_written() -> None:
    action = Action(UUID(int=1), 1, Run(()))
    born = ActionTransition(action, Decision(Run((), status=ActionStatus.CANCELLED)), datetime.now(UTC), is_new=True)
    with pytest.raises(IllegalTransition):
        transitions.write(cast(Any, None), [born])


def test_a_code_confirms_a_verification_as_the_table_allows() -> None:
    assert "verify_status = ANY(:sources)" in str(verification._SET_STATUS)


# ---- every statement ----

STATES = {
    "notifications": "status",
    "actions": "status",
    "dead_letters": "status",
    "recipient_channels": "verify_status",
}
# Every statement of delivery that writes a state. A test above, or in test_states.py, checks it against its table.
WRITERS = {
    "actions.redrive._SEND_AGAIN",
    "actions.transitions._INSERT",
    "actions.transitions._UPDATE",
    "actions.transitions._WITHDRAW",
    "directory.follow_channels._SETTLE",
    "directory.verification._SET_STATUS",
    "messages.claims.CLAIM",
    "messages.claims.CLAIM_BESIDE_CROWD",
    "messages.claims._PUT_BACK",
    "messages.dead_letters._CLOSE_REDRIVEN",
    "messages.dead_letters._CLOSE_REDRIVEN_STEP",
    "messages.dead_letters._COVER",
    "messages.dead_letters._DISCARD_ABOUT",
    "messages.dead_letters._DISCARD_MATCHING",
    "messages.dead_letters._DISCARD_ONE",
    "messages.dead_letters._EXPIRE_LATE",
    "messages.dead_letters._EXPIRE_OF_ACTIONS",
    "messages.outcomes.RECORD_MANY",
    "messages.outcomes.RECORD_ONE",
}


def delivery_modules() -> dict[str, ModuleType]:
    names = [
        ".".join(path.relative_to(APP.parent).with_suffix("").parts)
        for path in (APP / "delivery").rglob("*.py")
        if path.name != "__init__.py"
    ]
    return {name.removeprefix("app.delivery."): import_module(name) for name in names}


def statements_of(module: ModuleType) -> dict[str, str]:
    """By name. Retention writes its statements as parts, from which a sweep makes one."""
    found: dict[str, str] = {}
    for name, value in vars(module).items():
        sweep = value.sweep if isinstance(value, SweepByMonth) else value
        statement = sweep.bite if isinstance(sweep, Sweep) else value
        if isinstance(statement, TextClause):
            found[name] = str(statement)
    return found


def written_states(sql: str) -> list[str]:
    """The tables whose column with the state a statement writes."""
    updates = re.findall(r"UPDATE (\w+)(?: \w)?\s+SET\s(.*?)(?:\bFROM\s|\bWHERE\s|$)", sql, re.DOTALL)
    inserts = re.findall(r"INSERT INTO (\w+)\s*\(([^)]*)\)", sql)
    return [
        table
        for table, columns in updates + inserts
        if table in STATES and re.search(rf"\b{STATES[table]}\b(?: =|,|$)", columns)
    ]


def test_every_statement_that_writes_a_state_is_known() -> None:
    found = {
        f"{module}.{name}"
        for module, content in delivery_modules().items()
        for name, statement in statements_of(content).items()
        if written_states(statement)
    }
    assert found == WRITERS


def test_statements_are_constants_of_their_modules() -> None:
    """Or else the test above would not find them."""
    for name, module in delivery_modules().items():
        source = Path(str(module.__file__)).read_text()
        for table in STATES:
            in_constants = sum(
                len(re.findall(rf"(?:UPDATE|INSERT INTO) {table}\b", statement))
                for statement in statements_of(module).values()
            )
            assert in_constants >= len(re.findall(rf"(?:UPDATE|INSERT INTO) {table}\b", source)), name


def test_a_table_that_operators_edit_names_its_states() -> None:
    tables = {id(value): value for m in delivery_modules().values() for value in vars(m).values()}
    edited = [table for table in tables.values() if isinstance(table, EditableTable)]
    with_states = {table.table.name: set(table.states) for table in edited if table.table.name in STATES}
    assert with_states == {"recipient_channels": {"verify_status"}}


@pytest.mark.parametrize(
    ("table", "column", "transitions"),
    [
        (notifications_table, "status", NOTIFICATION_TRANSITIONS),
        (actions_table, "status", ACTION_TRANSITIONS),
        (dead_letters_table, "status", DEAD_LETTER_TRANSITIONS),
        (recipient_channels, "verify_status", VERIFY_TRANSITIONS),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_row_begins_in_a_state_of_its_table(
    table: Table, column: str, transitions: Mapping[Any, frozenset[Any]]
) -> None:
    default = table.c[column].server_default
    assert getattr(default, "arg", None) in transitions[None]
