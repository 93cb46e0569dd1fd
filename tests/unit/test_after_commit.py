"""Lines of the log and counts that wait for a commit."""

import pytest
from structlog.testing import capture_logs

from app.db.after_commit import count_after_commit, kept_until_commit, log_after_commit

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
