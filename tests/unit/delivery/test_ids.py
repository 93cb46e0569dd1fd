import time

from app.foundation.ids import uuid7


def test_ids_are_version_7_of_the_rfc() -> None:
    id_ = uuid7()
    assert id_.version == 7
    assert id_.variant == "specified in RFC 4122"


def test_ids_carry_the_time_they_were_made() -> None:
    before = time.time_ns() // 1_000_000
    milliseconds = uuid7().int >> 80
    assert before <= milliseconds <= time.time_ns() // 1_000_000 + 1


def test_ids_of_one_process_never_go_back_or_repeat() -> None:
    ids = [uuid7() for _ in range(10_000)]
    assert ids == sorted(set(ids))
