"""Messages between engine and worker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.jobs.engine.frames import BrokenFrame, FrameReader, pack
from app.jobs.engine.tail import KEPT_BYTES, Tail

MESSAGES = st.lists(
    st.tuples(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3), st.binary()),
    max_size=5,
)


@given(MESSAGES, st.lists(st.integers(1, 40), min_size=1))
def test_frames_arrive_whole_however_they_are_cut(
    messages: list[tuple[dict[str, object], bytes]], cuts: list[int]
) -> None:
    stream = b"".join(pack(message, blob) for message, blob in messages)
    reader, arrived, at, turn = FrameReader(), [], 0, 0
    while at < len(stream):
        cut = cuts[turn % len(cuts)]
        arrived += list(reader.feed(stream[at : at + cut]))
        at, turn = at + cut, turn + 1
    assert arrived == messages


@given(st.binary(min_size=8))
def test_bytes_that_are_no_frame_do_no_harm(received: bytes) -> None:
    try:
        for message, _ in FrameReader().feed(received):
            assert isinstance(message, dict)
    except BrokenFrame:
        return


def test_an_endless_frame_is_refused_by_its_head() -> None:
    with pytest.raises(BrokenFrame):
        list(FrameReader().feed(b"\xff" * 8))


@given(st.lists(st.binary(max_size=KEPT_BYTES), max_size=6))
def test_of_what_is_printed_the_end_is_kept(written: list[bytes]) -> None:
    tail = Tail()
    for part in written:
        tail.write(part)
    assert tail.text() == b"".join(written)[-KEPT_BYTES:].decode("utf-8", "replace")
