"""Streams and what goes into them, with a database that is a list."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from app.realtime.contract import EndReason, EventType, NoRoomForStream, TooManyStreams, Wanted
from app.realtime.event_stream import Block, EventStream
from app.realtime.event_visibility import EventRow
from app.realtime.event_wire import event_block
from app.realtime.fan_out import FanOut, Place
from app.realtime.stream_checks import EVERY_S, START_WITHIN_S, StreamChecks
from app.users.models import Caller, Role

NOW = datetime(2026, 11, 19, 20, 0, tzinfo=UTC)
TODAY = NOW.date()
ELDER = Caller(3, Role.ELDER, "Ayşe Yılmaz", "tr", 1)
COORDINATOR = Caller(9, Role.COORDINATOR, "Zeynep Koç", "tr", 1)
TASK = UUID("0197a000-0000-7000-8000-000000000001")
PATIENCE_S = 10


def event(id_: int, **more: Any) -> EventRow:
    known: dict[str, Any] = {"task_id": TASK, "elder_id": ELDER.id, "institutions": frozenset({1})}
    return EventRow(id_, EventType.TASK_CREATED, NOW, **(known | more))


async def no_history(_stream: EventStream, _after: int) -> tuple[Sequence[Block], int | None]:
    return [], None


class House:
    """A fan-out and its streams."""

    def __init__(self, *, most_streams: int = 100, most_per_person: int = 8) -> None:
        self.fan_out = FanOut(most_streams=most_streams, most_per_person=most_per_person)

    def open(self, who: Caller = ELDER, *, after: int | None = None, head: int = 10, **more: Any) -> EventStream:
        given: dict[str, Any] = {"read_page": no_history, "now": lambda: NOW, "on_close": self.fan_out.remove, **more}
        wanted = given.pop("wanted", Wanted())
        stream = EventStream(who, "token", wanted, after, **given)
        self.fan_out.add(stream, Place(head, TODAY))
        return stream

    def deliver(self, *rows: EventRow) -> int:
        return self.fan_out.deliver(rows, Place(rows[-1].id, TODAY))


class Reader:
    def __init__(self, stream: EventStream) -> None:
        self._pieces = aiter(stream)

    async def next(self) -> list[dict[str, str]]:
        async with asyncio.timeout(PATIENCE_S):
            return blocks(await anext(self._pieces))

    async def ids(self) -> list[int]:
        return [int(block["id"]) for block in await self.next()]

    async def is_over(self) -> bool:
        try:
            await self.next()
        except StopAsyncIteration:
            return True
        return False

    async def go(self) -> None:
        pieces: Any = self._pieces
        await pieces.aclose()


def blocks(piece: bytes) -> list[dict[str, str]]:
    text = piece.decode()
    assert text.endswith("\n\n")
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in text[:-2].split("\n\n")]


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def within_limits() -> None:
        await test()

    asyncio.run(within_limits())


def test_blocks_are_server_sent_events() -> None:
    block = event_block({"id": 4, "type": "TASK_CREATED", "studentName": "Işıl\nevent: END\r\n\u2028"})
    [fields] = blocks(block)
    assert (fields["id"], fields["event"]) == ("4", "TASK_CREATED")
    assert json.loads(fields["data"])["studentName"] == "Işıl\nevent: END\r\n\u2028"
    assert block.count(b"\n") == 4


def test_a_stream_begins_with_its_position_and_goes_on_with_new_events() -> None:
    async def test() -> None:
        house = House()
        reader = Reader(house.open())
        [ready] = await reader.next()
        assert json.loads(ready["data"]) == {"id": 10, "type": "READY", "at": "2026-11-19T20:00:00.000Z"}
        assert (ready["retry"], ready["id"]) == ("2000", "10")
        house.deliver(event(11), event(12, elder_id=4))
        house.deliver(event(13))
        assert await reader.ids() == [11, 13]
        await reader.go()
        assert house.fan_out.streams() == []

    run(test)


def test_a_waiting_stream_is_woken() -> None:
    async def test() -> None:
        house = House()
        reader = Reader(house.open())
        await reader.next()
        waiting = asyncio.ensure_future(reader.ids())
        await asyncio.sleep(0)
        await asyncio.to_thread(house.deliver, event(11))
        assert await waiting == [11]

    run(test)


def test_history_comes_first_and_joins_without_a_gap_or_a_repeat() -> None:
    async def test() -> None:
        house = House()
        asked: list[int] = []

        async def read_page(stream: EventStream, after: int) -> tuple[Sequence[Block], int | None]:
            asked.append(after)
            page = [(id_, event_block({"id": id_, "type": "TASK_CREATED"})) for id_ in (after + 1, after + 2)]
            # Meanwhile others write.
            house.deliver(event(11 + len(asked)))
            return page, after + 2 if after + 2 < stream.live_from else None

        reader = Reader(house.open(after=4, head=10, read_page=read_page))
        assert await reader.ids() == [4]
        assert [await reader.ids() for _ in range(4)] == [[5, 6], [7, 8], [9, 10], [12, 13, 14]]
        assert asked == [4, 6, 8]

    run(test)


@pytest.mark.parametrize(("after", "expected"), [(8, [(8, 10)]), (9, [(9, 10)]), (10, []), (11, [])])
def test_history_is_read_if_a_reader_is_one_event_behind(after: int, expected: list[tuple[int, int]]) -> None:
    asked: list[tuple[int, int]] = []

    async def read_page(stream: EventStream, after: int) -> tuple[Sequence[Block], int | None]:
        asked.append((after, stream.live_from))
        return [], None

    async def test() -> None:
        house = House()
        reader = Reader(house.open(after=after, head=10, read_page=read_page))
        assert await reader.ids() == [after]
        house.deliver(event(12))
        assert await reader.ids() == [12]

    run(test)
    assert asked == expected


def test_a_reader_who_has_seen_more_than_this_process_gets_nothing_twice() -> None:
    async def test() -> None:
        house = House()
        house.open(head=10)
        reader = Reader(house.open(after=12))
        assert await reader.ids() == [12]
        house.deliver(event(11), event(12), event(13))
        assert await reader.ids() == [13]

    run(test)


def test_signs_of_life_have_no_id() -> None:
    async def test() -> None:
        reader = Reader(House().open(heartbeat_s=0.001))
        await reader.next()
        assert await reader.next() == [{"event": "TIME", "data": '{"type":"TIME","at":"2026-11-19T20:00:00.000Z"}'}]

    run(test)


def test_a_reader_who_sees_nothing_of_a_long_history_gets_signs_of_life() -> None:
    read: list[int] = []

    async def nothing_to_see(_stream: EventStream, after: int) -> tuple[Sequence[Block], int | None]:
        read.append(after)
        return [], after + 1

    async def test() -> None:
        reader = Reader(House().open(after=1, read_page=nothing_to_see, heartbeat_s=0))
        assert [(await reader.next())[0]["event"] for _ in range(3)] == ["READY", "TIME", "TIME"]
        assert read == [1, 2]
        await reader.go()

    run(test)


def test_a_slow_reader_is_ended_and_may_resume() -> None:
    async def test() -> None:
        house = House()
        slow = Reader(house.open(most_waiting=3))
        quick = Reader(house.open())
        await slow.next()
        await quick.next()
        house.deliver(*(event(id_) for id_ in range(11, 16)))
        assert await slow.next() == [{"event": "END", "data": '{"type":"END","reason":"SLOW"}'}]
        assert await slow.is_over()
        assert await quick.ids() == [11, 12, 13, 14, 15]
        assert len(house.fan_out.streams()) == 1

    run(test)


def test_a_stream_that_is_ended_says_why() -> None:
    async def test() -> None:
        stream = House().open()
        reader = Reader(stream)
        await reader.next()
        waiting = asyncio.ensure_future(reader.next())
        await asyncio.sleep(0)
        stream.drain()
        stream.end(EndReason.SLOW)
        assert await waiting == [{"event": "END", "data": '{"type":"END","reason":"DRAINING"}'}]
        assert await reader.is_over()

    run(test)


def test_streams_are_bounded_for_a_person_and_for_the_process() -> None:
    house = House(most_streams=3, most_per_person=2)
    first = house.open()
    house.open()
    with pytest.raises(TooManyStreams):
        house.open()
    house.open(COORDINATOR)
    with pytest.raises(NoRoomForStream):
        house.open(Caller(4, Role.ELDER, "Hüseyin", "tr", None))
    house.fan_out.remove(first)
    house.fan_out.remove(first)
    house.open()


def test_events_find_their_streams() -> None:
    house = House()
    of_task = house.open(wanted=Wanted(TASK))
    of_other_task = house.open(wanted=Wanted(UUID(int=1)))
    own, others, everything = (
        house.open(COORDINATOR),
        *(
            house.open(Caller(id_, Role.COORDINATOR, "", "tr", institution))
            for id_, institution in ((20, 2), (21, None))
        ),
    )
    assert house.deliver(event(11)) == 3
    assert house.deliver(event(12, task_id=UUID(int=1), institutions=frozenset({2}))) == 3
    got = {stream: [id_ for id_, _ in stream._waiting] for stream in house.fan_out.streams()}  # pyright: ignore[reportPrivateUsage]
    assert got == {of_task: [11], of_other_task: [12], own: [11], others: [12], everything: [11, 12]}


def test_without_streams_nothing_is_followed() -> None:
    house = House()
    assert house.fan_out.place is None
    stream = house.open(head=10)
    assert house.fan_out.place == Place(10, TODAY)
    house.fan_out.remove(stream)
    assert house.fan_out.place is None
    house.fan_out.begin_anew(Place(5, TODAY))
    assert house.fan_out.place is None
    # Events that were read for the streams of before are older than the new one.
    late = house.open(head=20)
    assert house.fan_out.deliver([event(11)], Place(11, date(2026, 11, 18))) == 0
    assert (house.fan_out.place, late.live_from) == (Place(20, TODAY), 20)


class Checked:
    """Streams that are checked with a clock of our own."""

    def __init__(self) -> None:
        self.house, self.now = House(), 0.0
        self.answers: dict[str, Any] = {}
        self.asked: list[Sequence[str]] = []
        self.checks = StreamChecks(self.house.fan_out, self._check, self.house.fan_out.remove, lambda: self.now)

    def _check(self, tokens: Sequence[str]) -> list[Any]:
        self.asked.append(tokens)
        return [self.answers.get(token) for token in tokens]

    def after(self, seconds: float) -> None:
        self.now += seconds
        self.checks.turn()


@pytest.mark.parametrize("reason", [EndReason.TOKEN_EXPIRED, EndReason.DEACTIVATED])
def test_who_may_not_read_any_more_is_ended(reason: EndReason) -> None:
    checked = Checked()
    stream = checked.house.open()
    stream.has_started = True
    checked.after(0)
    checked.after(EVERY_S - 1)
    assert checked.asked == []
    checked.answers["token"] = reason
    checked.after(1)
    assert stream.reason is reason


def test_streams_are_kept_while_the_check_knows_nothing_and_checked_again_soon() -> None:
    checked = Checked()
    stream = checked.house.open()
    stream.has_started = True
    checked.after(0)
    checked.after(EVERY_S)
    checked.after(1)
    assert (len(checked.asked), stream.reason) == (2, None)
    checked.answers["token"] = ELDER
    checked.after(1)
    checked.after(EVERY_S - 1)
    assert len(checked.asked) == 3


def test_a_coordinator_who_changes_institution_sees_the_new_one() -> None:
    checked = Checked()
    stream = checked.house.open(COORDINATOR)
    stream.has_started = True
    checked.after(0)
    checked.answers["token"] = Caller(9, Role.COORDINATOR, "Zeynep Koç", "tr", 2)
    checked.after(EVERY_S)
    assert checked.house.deliver(event(11)) == 0
    assert checked.house.deliver(event(12, institutions=frozenset({2}))) == 1


def test_a_stream_that_nobody_reads_is_given_up() -> None:
    checked = Checked()
    checked.house.open()
    checked.after(0)
    checked.after(START_WITHIN_S)
    assert checked.house.fan_out.streams() == []
