"""Times as operators type them."""

import argparse
from datetime import datetime, timedelta

import pytest

from app.cli.moments import moment

NOW = datetime(2026, 3, 12, 20, 55, 30).astimezone()


def read(text: str) -> datetime:
    return moment(text, lambda: NOW)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", NOW),
        ("today", datetime(2026, 3, 12).astimezone()),
        ("yesterday", datetime(2026, 3, 11).astimezone()),
        (" Yesterday ", datetime(2026, 3, 11).astimezone()),
        ("90m", NOW - timedelta(minutes=90)),
        ("24h", NOW - timedelta(hours=24)),
        ("7 d", NOW - timedelta(days=7)),
        ("2026-03-10", datetime(2026, 3, 10).astimezone()),
        ("2026-03-10T20:55", datetime(2026, 3, 10, 20, 55).astimezone()),
        ("2026-03-10T20:55+03:00", datetime.fromisoformat("2026-03-10T20:55+03:00")),
    ],
)
def test_moment_is_read(text: str, meant: datetime) -> None:
    assert read(text) == meant


@pytest.mark.parametrize("text", ["", "tomorrowish", "12/03/2026", "7w", "-3d", "999999d", "9999-12-31T23:59:59-23:00"])
def test_other_words_are_answered_with_what_works(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="yesterday"):
        read(text)
