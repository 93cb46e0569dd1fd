"""Combining the follow-up work of several transactions."""

from datetime import UTC, datetime
from uuid import UUID

from app.matching.follow_up import Figures, FollowUp, combined, no_offer_keys

ONE, TWO = UUID(int=1), UUID(int=2)
NOON = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)


def test_empty_parts_make_an_empty_follow_up() -> None:
    assert combined() == combined(FollowUp(), FollowUp()) == FollowUp()


def test_parts_are_united_and_figures_added() -> None:
    first = FollowUp(again=frozenset({ONE}), freed=frozenset({1}), figures=Figures((0.5,), offered=2))
    second = FollowUp(
        began_to_wait=frozenset({TWO}),
        freed=frozenset({2}),
        unavailable=frozenset({3}),
        figures=Figures((0.1, 0.2), ended=1),
    )
    assert combined(first, second) == FollowUp(
        again=frozenset({ONE}),
        began_to_wait=frozenset({TWO}),
        freed=frozenset({1, 2}),
        unavailable=frozenset({3}),
        figures=Figures((0.5, 0.1, 0.2), offered=2, ended=1),
    )


def test_later_keys_of_a_task_replace_earlier_ones() -> None:
    earlier, later = FollowUp(no_offer_keys(ONE)), FollowUp(no_offer_keys(ONE, NOON))
    assert combined(earlier, later).keys == later.keys
    assert combined(earlier, FollowUp(no_offer_keys(TWO))).keys.keys() == {ONE, TWO}
