"""The queue in memory: order, limit, and waiting."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.delivery.messages.values import URGENT_FIRST, Priority
from app.foundation.buffer import STARVED_TURN, Buffer, BufferClosed

P = Priority
Item = tuple[Priority, int]


def make(capacity: int = 1000) -> Buffer[Item]:
    """Of these items, nobody has two."""
    return Buffer(capacity, URGENT_FIRST, lambda item: item[0], lambda item: item)


def filled(*items: Item) -> Buffer[Item]:
    queue = make()
    for item in items:
        queue.put(item)
    return queue


def in_background(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    return thread, results


def test_first_in_is_first_out_within_a_priority() -> None:
    queue = filled(*[(P.NORMAL, number) for number in range(5)])
    assert [queue.take() for _ in range(5)] == [[(P.NORMAL, number)] for number in range(5)]


def test_owner_of_many_items_does_not_delay_the_others() -> None:
    queue: Buffer[tuple[str, int]] = Buffer(2000, [P.LOW], lambda _: P.LOW, lambda item: item[0])
    for number in range(1500):
        queue.put(("ali", number))
    assert queue.take(2) == [("ali", 0), ("ali", 1)]
    for item in (("ece", 0), ("ece", 1), ("can", 0)):
        queue.put(item)
    taken = queue.take(6)
    assert taken.index(("ece", 0)) < 2
    assert taken.index(("can", 0)) < 3
    assert [item for item in taken if item[0] == "ali"] == [("ali", number) for number in range(2, 5)]
    assert taken.index(("ece", 1)) > taken.index(("can", 0)), "nobody's second item comes before anybody's first"


def test_heavy_items_count_as_many_for_their_owner_and_in_a_take() -> None:
    """A push to somebody with ten phones is ten requests."""
    queue: Buffer[tuple[str, int]] = Buffer(100, [P.LOW], lambda _: P.LOW, lambda item: item[0], lambda item: item[1])
    for item in (("ali", 10), ("ali", 10), ("ece", 1), ("ece", 1), ("ece", 1)):
        queue.put(item)
    assert queue.take(3) == [("ali", 10)]
    assert queue.take(3) == [("ece", 1)] * 3, "ten turns of others come before the next ten of one"
    assert queue.take(3) == [("ali", 10)]


def test_higher_priority_goes_first() -> None:
    queue = filled((P.LOW, 1), (P.NORMAL, 2), (P.URGENT, 3), (P.HIGH, 4), (P.URGENT, 5))
    assert queue.take(5) == [(P.URGENT, 3), (P.URGENT, 5), (P.HIGH, 4), (P.NORMAL, 2), (P.LOW, 1)]


def test_low_priority_is_not_starved() -> None:
    """An item of low priority gets its turn while urgent ones keep arriving."""
    queue = filled((P.LOW, 0))
    taken: list[Item] = []
    for number in range(STARVED_TURN):
        queue.put((P.URGENT, number))
        taken += queue.take()
    assert taken.index((P.LOW, 0)) == STARVED_TURN - 1


def test_take_returns_at_most_the_requested_number() -> None:
    queue = filled(*[(P.NORMAL, number) for number in range(3)])
    assert len(queue.take(2)) == 2
    assert len(queue.take(2)) == 1
    assert queue.take(2, timeout_s=0) == []


def test_put_waits_while_the_queue_is_full() -> None:
    queue = make(capacity=1)
    queue.put((P.NORMAL, 1))
    thread, _ = in_background(lambda: queue.put((P.NORMAL, 3)))
    thread.join(0.05)
    assert thread.is_alive()
    assert queue.take() == [(P.NORMAL, 1)]
    thread.join(5)
    assert queue.take() == [(P.NORMAL, 3)]


def test_consumer_waits_for_an_item() -> None:
    queue = make()
    thread, results = in_background(queue.take)
    queue.put((P.LOW, 7))
    thread.join(5)
    assert results == [[(P.LOW, 7)]]


def test_closing_ends_waits_and_returns_the_rest() -> None:
    queue = make(capacity=1)
    queue.put((P.NORMAL, 1))

    def put() -> str:
        with pytest.raises(BufferClosed):
            queue.put((P.NORMAL, 2))
        return "refused"

    producer, refused = in_background(put)
    assert queue.close() == [(P.NORMAL, 1)]
    producer.join(5)
    assert refused == ["refused"]
    assert queue.take() == []
    with pytest.raises(BufferClosed):
        queue.put((P.NORMAL, 3))


def test_closing_refuses_those_of_several_items_that_found_no_room() -> None:
    queue = make(capacity=2)

    def put() -> int:
        with pytest.raises(BufferClosed) as closed:
            queue.put(*[(P.NORMAL, number) for number in range(5)])
        return closed.value.refused

    producer, refused = in_background(put)
    assert queue.take() == [(P.NORMAL, 0)]
    while len(queue) < 2:
        producer.join(0.001)
    left = queue.close()
    producer.join(5)
    assert [*left, *refused] == [(P.NORMAL, 1), (P.NORMAL, 2), 2]


def test_closing_wakes_consumers() -> None:
    queue = make()
    consumers = [in_background(queue.take) for _ in range(3)]
    queue.close()
    for thread, _ in consumers:
        thread.join(5)
    assert [results for _, results in consumers] == [[[]]] * 3


def test_concurrent_use_loses_and_repeats_nothing() -> None:
    queue, taken, lock = make(capacity=7), list[Item](), threading.Lock()

    def produce(producer: int) -> None:
        for number in range(500):
            queue.put((tuple(P)[number % 4], producer * 1000 + number))

    def consume() -> None:
        while items := queue.take(3):
            with lock:
                taken.extend(items)
                if len(taken) == 4000:
                    queue.close()

    consumers = [in_background(consume)[0] for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(produce, range(8)))
    for thread in consumers:
        thread.join(30)
    assert sorted(number for _, number in taken) == sorted(p * 1000 + n for p in range(8) for n in range(500))
