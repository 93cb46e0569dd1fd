"""The table of a notification's transitions, and that every SQL statement keeps to it."""

import re

import pytest
from sqlalchemy import TextClause

from app.db.schema import one_of
from app.delivery.actions import redrive, transitions
from app.delivery.messages import claims, models, outcomes
from app.delivery.messages.message_log import RECORDED
from app.delivery.messages.states import FINAL, LIVE
from app.delivery.messages.states import NOTIFICATION_TRANSITIONS as TRANSITIONS
from app.delivery.messages.values import NotificationStatus as S
from app.foundation.state_machine import IllegalTransition, check_transition, sources


def test_every_status_has_its_transitions() -> None:
    assert set(TRANSITIONS) == {None, *S}


def test_a_final_status_is_left_only_by_redriving_a_dead_notification() -> None:
    assert {status for status, targets in TRANSITIONS.items() if not targets} == FINAL - {S.DEAD}
    assert TRANSITIONS[S.DEAD] == {S.ACCEPTED}


def test_only_a_waiting_notification_can_be_cancelled() -> None:
    assert {status for status, targets in TRANSITIONS.items() if S.CANCELLED in targets} == {S.ACCEPTED, S.RETRYING}


def test_a_notification_is_claimed_before_it_is_sent_or_given_up() -> None:
    assert {status for status, targets in TRANSITIONS.items() if targets & {S.SENT, S.DEAD}} == {S.SENDING}


def test_every_result_of_an_attempt_has_its_line_in_the_log() -> None:
    assert set(RECORDED) == TRANSITIONS[S.SENDING] - {S.SENDING}


@pytest.mark.parametrize(("current", "target"), [(S.SENT, S.SENDING), (S.ACCEPTED, S.SENT), (S.DEAD, S.RETRYING)])
def test_a_transition_that_the_table_lacks_is_refused(current: S, target: S) -> None:
    with pytest.raises(IllegalTransition):
        check_transition(TRANSITIONS, current, target)


def test_sources_are_the_states_that_lead_to_every_target() -> None:
    assert sources(TRANSITIONS, S.ACCEPTED) == (S.SENDING, S.DEAD)
    assert sources(TRANSITIONS, S.ACCEPTED, S.RETRYING) == (S.SENDING,)
    assert sources(TRANSITIONS, S.ACCEPTED, S.CANCELLED) == ()


def test_a_statement_that_no_state_allows_is_refused_when_it_is_built() -> None:
    with pytest.raises(ValueError, match=r"n\.status"):
        one_of("n.status", sources(TRANSITIONS, S.ACCEPTED, S.CANCELLED))


def test_the_schema_means_the_same_by_live_and_failed() -> None:
    assert set(re.findall(r"'(\w+)'", models.LIVE)) == LIVE
    assert set(re.findall(r"'(\w+)'", models.FAILED)) == FINAL - {S.SENT}


def test_a_new_notification_has_the_initial_status() -> None:
    default = models.notifications.c.status.server_default
    assert {getattr(default, "arg", None)} == TRANSITIONS[None] == {S.ACCEPTED}


# ---- statements ----------------------------------------------------------------------------------------------------

# The sources and the targets of every statement that changes the status of a notification. `reported` stands for the
# status of a verdict, which `record` checks one by one.
STATEMENTS: dict[str, tuple[TextClause, set[S], set[S]]] = {
    "claim": (claims.CLAIM, {S.ACCEPTED, S.SENDING, S.RETRYING}, {S.SENDING, S.EXPIRED}),
    "claim beside a crowd": (
        claims.CLAIM_BESIDE_CROWD,
        {S.ACCEPTED, S.SENDING, S.RETRYING},
        {S.SENDING, S.EXPIRED},
    ),
    "put back": (claims._PUT_BACK, {S.SENDING}, {S.ACCEPTED, S.RETRYING}),
    "record": (outcomes.RECORD_MANY, {S.SENDING}, {S.EXPIRED}),
    "record one": (outcomes.RECORD_ONE, {S.SENDING}, {S.EXPIRED}),
    "withdraw": (transitions._WITHDRAW, {S.ACCEPTED, S.RETRYING}, {S.CANCELLED}),
    "redrive": (redrive._SEND_AGAIN, {S.DEAD}, {S.ACCEPTED}),
}
_CHANGE = re.compile(r"UPDATE notifications\b(?:\s+n)?\s+SET\s+status = (?P<targets>CASE.*?\bEND\b|'\w+')", re.DOTALL)
_STATUSES = re.compile("'(" + "|".join(S) + ")'")
_CONDITION = re.compile(r"\bstatus(?: \|\| '')? IN \(([^)]*)\)")


def statuses(text: str) -> set[S]:
    return {S(name) for name in _STATUSES.findall(text)}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_changes_the_status_as_the_table_allows(name: str) -> None:
    statement, expected_sources, expected_targets = STATEMENTS[name]
    sql = str(statement)
    change = _CHANGE.search(sql)
    assert change is not None
    # The condition beside the change; a claim has it where it chooses the rows.
    conditions = _CONDITION.findall(sql[change.end() :]) or _CONDITION.findall(sql)
    assert conditions
    assert [statuses(one) for one in conditions] == [expected_sources] * len(conditions)
    targets = statuses(re.sub(r"WHEN .*? THEN", "", change["targets"], flags=re.DOTALL))
    assert targets == expected_targets
    assert all(expected_targets <= TRANSITIONS[source] for source in expected_sources)
