import re

import pytest

from app.delivery.messages import models
from app.delivery.messages.states import FINAL, LIVE, STEPS, WAITING, IllegalNotificationStep, check_step
from app.delivery.messages.values import NotificationStatus as S


def test_every_status_has_its_steps() -> None:
    assert set(STEPS) == set(S)


def test_what_is_finished_stays_finished_but_for_an_operator_who_has_the_dead_tried_anew() -> None:
    assert {status for status, steps in STEPS.items() if not steps} == FINAL - {S.DEAD}
    assert STEPS[S.DEAD] == {S.ACCEPTED}


def test_only_what_waits_can_be_cancelled() -> None:
    assert {status for status, steps in STEPS.items() if S.CANCELLED in steps} == WAITING


def test_everything_that_is_sent_or_given_up_was_claimed_first() -> None:
    assert {status for status, steps in STEPS.items() if steps & {S.SENT, S.DEAD}} == {S.SENDING}


@pytest.mark.parametrize(("current", "target"), [(S.SENT, S.SENDING), (S.ACCEPTED, S.SENT), (S.DEAD, S.RETRYING)])
def test_a_step_that_is_none_is_refused(current: S, target: S) -> None:
    with pytest.raises(IllegalNotificationStep):
        check_step(current, target)


def test_the_schema_means_the_same_by_live_and_failed() -> None:
    assert set(re.findall(r"'(\w+)'", models.LIVE)) == LIVE
    assert set(re.findall(r"'(\w+)'", models.FAILED)) == FINAL - {S.SENT}
