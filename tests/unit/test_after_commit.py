"""Lines of the log and counts that wait for a commit."""

import logging
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import structlog
from structlog.testing import capture_logs

from app.db.after_commit import count_after_commit, count_nothing, kept_until_commit, log_after_commit

Counted = list[tuple[str, str, int]]


def test_counts_and_lines_wait_for_the_commit() -> None:
    counted: Counted = []
    with capture_logs() as logs:
        with kept_until_commit(lambda *count: counted.append(count)):
            for label in ("SMS", "PUSH", "PUSH"):
                count_after_commit("submitted", label)
            log_after_commit("info", "sent")
            assert (counted, logs) == ([], [])
        assert counted == [("submitted", "SMS", 1), ("submitted", "PUSH", 2)]
        assert [line["event"] for line in logs] == ["sent"]


def test_what_is_rolled_back_leaves_neither() -> None:
    counted: Counted = []
    with (
        capture_logs() as logs,
        pytest.raises(ZeroDivisionError),
        kept_until_commit(lambda *count: counted.append(count)),
    ):
        count_after_commit("submitted", "PUSH")
        log_after_commit("info", "sent")
        raise ZeroDivisionError
    assert (counted, logs) == ([], [])


@pytest.fixture
def config() -> Iterator[dict[str, Any]]:
    config = structlog.get_config()
    yield config
    structlog.configure(**config)


@pytest.mark.parametrize(("level", "written"), [(logging.DEBUG, ["step", "end"]), (logging.INFO, ["end"])])
def test_lines_are_kept_if_the_log_has_their_level(level: int, written: list[str], config: dict[str, Any]) -> None:
    structlog.configure(**(config | {"wrapper_class": structlog.make_filtering_bound_logger(level)}))
    id_ = UUID(int=7)
    with capture_logs() as logs, kept_until_commit(count_nothing):
        log_after_commit("debug", "step", notification_id=id_)
        log_after_commit("info", "end", notification_id=id_)
    assert [(line["event"], line["notification_id"]) for line in logs] == [(event, str(id_)) for event in written]
