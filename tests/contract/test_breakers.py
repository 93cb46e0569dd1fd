"""The contract of the breakers, in Redis and in memory."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import fakeredis
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.delivery.sending.breaker_gate import MOST_KNOWN, BreakerGate
from app.foundation.state_machine import check_transition
from app.ops.breaker_gauges import BreakerGauges
from app.redis_store.breakers import (
    BREAKER_TRANSITIONS,
    GO,
    BreakerRules,
    Breakers,
    BreakerState,
    Passage,
    Permit,
    RedisBreakers,
)
from tests.support.breakers import MemoryBreakers

RULES = BreakerRules(window_s=10, failures=4, share=0.5, open_s=15)
PROBE_S = 6.0


class Time:
    """Seconds since a fixed moment, in whole milliseconds."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=["memory", "fakeredis", "redis"])
def breakers(request: pytest.FixtureRequest, time: Time) -> Iterator[Breakers]:
    if request.param == "memory":
        yield MemoryBreakers(RULES, time)
        return
    if request.param == "fakeredis":
        client: Any = fakeredis.FakeRedis(decode_responses=True)
    else:
        client = redis.Redis.from_url(request.getfixturevalue("redis_url"), decode_responses=True)
    client.flushdb()
    yield RedisBreakers(client, RULES, time)
    client.flushdb()
    client.close()


def open_breaker(breakers: Breakers, name: str = "fcm") -> None:
    breakers.tell(name, calls=4, failures=4)


def test_provider_without_failures_is_closed(breakers: Breakers) -> None:
    assert breakers.ask("fcm", PROBE_S) == GO
    breakers.tell("fcm", calls=100, failures=3)
    assert breakers.ask("fcm", PROBE_S) == GO
    assert breakers.states()["fcm"] is BreakerState.CLOSED


def test_too_many_failures_open_the_breaker_for_its_time(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    assert breakers.ask("fcm", PROBE_S) == Permit(Passage.WAIT, 15)
    time.now += 10
    assert breakers.ask("fcm", PROBE_S) == Permit(Passage.WAIT, 5)
    assert breakers.states() == {"fcm": BreakerState.OPEN}


def test_open_breaker_does_not_affect_another_provider(breakers: Breakers) -> None:
    open_breaker(breakers)
    assert breakers.ask("smtp", PROBE_S) == GO


@pytest.mark.parametrize(("calls", "failures", "opens"), [(3, 3, False), (8, 4, True), (9, 4, False), (40, 8, False)])
def test_breaker_opens_at_a_number_and_a_share_of_failures(
    breakers: Breakers, calls: int, failures: int, opens: bool
) -> None:
    breakers.tell("fcm", calls=calls, failures=failures)
    assert (breakers.ask("fcm", PROBE_S) != GO) is opens


def test_failures_before_the_window_do_not_count(breakers: Breakers, time: Time) -> None:
    breakers.tell("fcm", calls=3, failures=3)
    time.now += 10.001
    breakers.tell("fcm", calls=3, failures=3)
    assert breakers.ask("fcm", PROBE_S) == GO
    breakers.tell("fcm", calls=1, failures=1)
    assert breakers.ask("fcm", PROBE_S).passage is Passage.WAIT


def test_one_probe_is_allowed_and_the_others_wait_for_it(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 15
    assert breakers.ask("fcm", PROBE_S).passage is Passage.PROBE
    assert breakers.ask("fcm", PROBE_S) == Permit(Passage.WAIT, PROBE_S)
    assert breakers.states() == {"fcm": BreakerState.HALF_OPEN}


def test_of_forty_concurrent_calls_one_is_the_probe(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 15
    together = threading.Barrier(20)

    def ask(_: int) -> Passage:
        together.wait(10)
        return breakers.ask("fcm", PROBE_S).passage

    with ThreadPoolExecutor(20) as pool:
        passages = list(pool.map(ask, range(40)))
    assert sorted(passages) == sorted([Passage.PROBE, *[Passage.WAIT] * 39])


def test_successful_probe_closes_the_breaker(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 15
    breakers.ask("fcm", PROBE_S)
    breakers.tell("fcm", calls=1, failures=0, probe=True)
    assert breakers.ask("fcm", PROBE_S) == GO
    breakers.tell("fcm", calls=3, failures=3)
    assert breakers.ask("fcm", PROBE_S) == GO


def test_failed_probe_opens_the_breaker_again(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 16
    breakers.ask("fcm", PROBE_S)
    breakers.tell("fcm", calls=1, failures=1, probe=True)
    assert breakers.ask("fcm", PROBE_S) == Permit(Passage.WAIT, 15)


def test_probe_that_was_not_made_is_given_to_the_next_call(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 16
    breakers.ask("fcm", PROBE_S)
    breakers.tell("fcm", calls=0, failures=0, probe=True)
    assert breakers.ask("fcm", PROBE_S).passage is Passage.PROBE


def test_probe_of_a_dead_worker_is_made_again(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 16
    breakers.ask("fcm", PROBE_S)
    time.now += PROBE_S
    assert breakers.ask("fcm", PROBE_S).passage is Passage.PROBE


def test_late_results_do_not_change_an_open_breaker(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 14
    breakers.tell("fcm", calls=50, failures=50)
    breakers.tell("fcm", calls=50, failures=0)
    assert breakers.ask("fcm", PROBE_S) == Permit(Passage.WAIT, 1)


def test_metrics_show_the_state_of_each_provider(breakers: Breakers, time: Time) -> None:
    breakers.tell("smtp", calls=5, failures=0)
    open_breaker(breakers)
    [providers, _] = BreakerGauges(breakers).collect()
    assert {sample.labels["provider"]: sample.value for sample in providers.samples} == {"fcm": 2, "smtp": 0}


def test_metrics_count_receivers_of_webhooks_without_naming_them(breakers: Breakers) -> None:
    breakers.tell("ornek.org:443", calls=5, failures=0)
    breakers.tell("2001:db8::1:443", calls=5, failures=0)
    open_breaker(breakers, "gizli.ornek.org:443")
    families = list(BreakerGauges(breakers).collect())
    assert "ornek" not in str(families)
    counts = {sample.labels["state"]: sample.value for sample in families[1].samples}
    assert counts == {"closed": 2, "open": 1, "half_open": 0}


def test_probe_that_was_not_made_leaves_no_key(redis_url: str) -> None:
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    client.flushdb()
    own = RedisBreakers(client, RULES)
    own.tell("fcm", calls=0, failures=0, probe=True)
    assert client.keys("*") == []
    client.close()


def test_gate_keeps_a_limited_number_of_receivers_of_webhooks(time: Time) -> None:
    gate = BreakerGate(MemoryBreakers(RULES, time), time)
    for number in range(MOST_KNOWN + 100):
        name = f"host-{number}:443"
        gate.tell(name, gate.ask(name, PROBE_S), calls=1, failures=0)
    assert len(gate._known) == MOST_KNOWN  # pyright: ignore[reportPrivateUsage]


def test_without_a_clock_the_time_of_redis_is_used(redis_url: str) -> None:
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    client.flushdb()
    own = RedisBreakers(client, RULES)
    open_breaker(own)
    permit = own.ask("fcm", PROBE_S)
    assert permit.passage is Passage.WAIT
    assert 10 < permit.wait_s <= 15
    assert own.states() == {"fcm": BreakerState.OPEN}
    client.flushdb()
    client.close()


# ---- random sequences ----


@dataclass(frozen=True)
class Call:
    """A call of a breaker after a pause."""

    pause_s: int
    calls: int
    failures: int
    probe: bool = False
    """Reports as a probe, whether or not it is one: probes may end after their time."""


CALLS = st.builds(
    lambda pause_s, succeeded, failures, probe: Call(pause_s, succeeded + failures, failures, probe),
    st.sampled_from([0, 1, 5, 6, 7, 10, 15, 16]),
    st.integers(0, 5),
    st.integers(0, 5),
    st.booleans(),
)


@pytest.fixture(scope="module")
def own_redis(redis_url: str) -> Iterator[Any]:
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    yield client
    client.flushdb()
    client.close()


def state_of(breakers: Breakers) -> BreakerState:
    """A breaker that is not known is closed."""
    return breakers.states().get("fcm", BreakerState.CLOSED)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CALLS, min_size=1, max_size=25))
def test_any_sequence_keeps_to_the_table_and_is_the_same_in_memory_and_in_redis(
    own_redis: Any, sequence: list[Call]
) -> None:
    own_redis.flushdb()
    time = Time()
    both: list[Breakers] = [MemoryBreakers(RULES, time), RedisBreakers(own_redis, RULES, time)]
    state = BreakerState.CLOSED
    for call in sequence:
        time.now += call.pause_s
        state = moved(state, both)
        permits = [one.ask("fcm", PROBE_S) for one in both]
        assert permits[0] == permits[1]
        state = moved(state, both)
        for one in both:
            one.tell("fcm", calls=call.calls, failures=call.failures, probe=call.probe)
        state = moved(state, both)


def moved(before: BreakerState, both: Sequence[Breakers]) -> BreakerState:
    """The state of both now. It has to be one that may follow."""
    after, other = (state_of(one) for one in both)
    assert after is other
    check_transition(BREAKER_TRANSITIONS, before, after)
    return after
