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


ANA, ALI, ECE, CAN, NEW = "ana", "ali", "ece", "can", "new"


def people(number: int) -> list[str]:
    return [f"person {place}" for place in range(number)]


def open_breaker(breakers: Breakers, name: str = "fcm") -> None:
    """The last failure is Can's."""
    breakers.tell(name, succeeded=0, failed=[ANA, ALI, ECE, CAN])


def test_provider_without_failures_is_closed(breakers: Breakers) -> None:
    assert breakers.ask("fcm", PROBE_S, [NEW]) == GO
    breakers.tell("fcm", succeeded=97, failed=people(3))
    assert breakers.ask("fcm", PROBE_S, [NEW]) == GO
    assert breakers.states()["fcm"] is BreakerState.CLOSED


def test_too_many_failures_open_the_breaker_for_its_time(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    assert breakers.ask("fcm", PROBE_S, [NEW]) == Permit(Passage.WAIT, 15)
    time.now += 10
    assert breakers.ask("fcm", PROBE_S, [NEW]) == Permit(Passage.WAIT, 5)
    assert breakers.states() == {"fcm": BreakerState.OPEN}


def test_open_breaker_does_not_affect_another_provider(breakers: Breakers) -> None:
    open_breaker(breakers)
    assert breakers.ask("smtp", PROBE_S, [NEW]) == GO


@pytest.mark.parametrize(("succeeded", "failed", "opens"), [(0, 3, False), (4, 4, True), (5, 4, False), (32, 8, False)])
def test_breaker_opens_at_a_number_and_a_share_of_recipients_that_failed(
    breakers: Breakers, succeeded: int, failed: int, opens: bool
) -> None:
    breakers.tell("fcm", succeeded=succeeded, failed=people(failed))
    assert (breakers.ask("fcm", PROBE_S, [NEW]) != GO) is opens


def test_failures_before_the_window_do_not_count(breakers: Breakers, time: Time) -> None:
    breakers.tell("fcm", succeeded=0, failed=[ANA, ALI, ECE])
    time.now += 10.001
    breakers.tell("fcm", succeeded=0, failed=[ALI, ECE, CAN])
    assert breakers.ask("fcm", PROBE_S, [NEW]) == GO
    breakers.tell("fcm", succeeded=0, failed=[ANA])
    assert breakers.ask("fcm", PROBE_S, [NEW]).passage is Passage.WAIT


def test_one_probe_is_allowed_and_the_others_wait_for_it(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 15
    assert breakers.ask("fcm", PROBE_S, [NEW]).passage is Passage.PROBE
    assert breakers.ask("fcm", PROBE_S, [NEW]) == Permit(Passage.WAIT, PROBE_S)
    assert breakers.states() == {"fcm": BreakerState.HALF_OPEN}


def test_of_forty_concurrent_calls_one_is_the_probe(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 15
    together = threading.Barrier(20)

    def ask(_: int) -> Passage:
        together.wait(10)
        return breakers.ask("fcm", PROBE_S, [NEW]).passage

    with ThreadPoolExecutor(20) as pool:
        passages = list(pool.map(ask, range(40)))
    assert sorted(passages) == sorted([Passage.PROBE, *[Passage.WAIT] * 39])


def test_successful_probe_closes_the_breaker(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 15
    breakers.ask("fcm", PROBE_S, [NEW])
    breakers.tell("fcm", succeeded=1, probe=True)
    assert breakers.ask("fcm", PROBE_S, [NEW]) == GO
    breakers.tell("fcm", succeeded=0, failed=people(3))
    assert breakers.ask("fcm", PROBE_S, [NEW]) == GO


def test_failed_probe_opens_the_breaker_again(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 16
    breakers.ask("fcm", PROBE_S, [NEW])
    breakers.tell("fcm", succeeded=0, failed=[NEW], probe=True)
    assert breakers.ask("fcm", PROBE_S, ["newer"]) == Permit(Passage.WAIT, 15)


def test_failures_of_one_recipient_are_not_those_of_the_provider(breakers: Breakers) -> None:
    for _ in range(50):
        breakers.tell("fcm", succeeded=0, failed=[ANA])
    assert breakers.ask("fcm", PROBE_S, [ANA]) == GO
    # They hide those of the others neither: the share is one of recipients, not of calls.
    breakers.tell("fcm", succeeded=4, failed=[ALI, ECE, CAN])
    assert breakers.ask("fcm", PROBE_S, [NEW]).passage is Passage.WAIT


def test_recipient_without_a_failure_probes_first_and_the_last_failed_one_last(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    assert breakers.ask("fcm", PROBE_S, [CAN]) == Permit(Passage.WAIT, 15), "by then another probe may have succeeded"
    time.now += 15
    assert breakers.ask("fcm", PROBE_S, [CAN]) == Permit(Passage.WAIT, 10)
    assert breakers.ask("fcm", PROBE_S, [CAN, ANA]) == Permit(Passage.WAIT, 5)
    assert breakers.ask("fcm", PROBE_S, [CAN, ANA, NEW]) == Permit(Passage.PROBE, chosen=2)


def test_only_recipient_that_waits_probes_although_it_failed_last(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    for _ in range(2):
        time.now += 15
        wait = breakers.ask("fcm", PROBE_S, [CAN])
        assert wait == Permit(Passage.WAIT, 10)
        time.now += wait.wait_s
        assert breakers.ask("fcm", PROBE_S, [CAN]) == Permit(Passage.PROBE)
        breakers.tell("fcm", succeeded=0, failed=[CAN], probe=True)


def test_failures_are_remembered_until_a_probe_succeeds(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 15
    breakers.ask("fcm", PROBE_S, [NEW])
    breakers.tell("fcm", succeeded=0, failed=[NEW], probe=True)
    time.now += 15
    assert breakers.ask("fcm", PROBE_S, [NEW, CAN]) == Permit(Passage.WAIT, 5)
    breakers.ask("fcm", PROBE_S, ["newer"])
    breakers.tell("fcm", succeeded=1, probe=True)
    open_breaker(breakers)
    time.now += 15
    assert breakers.ask("fcm", PROBE_S, [NEW]).passage is Passage.PROBE


def test_probe_that_was_not_made_is_given_to_the_next_call(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 16
    breakers.ask("fcm", PROBE_S, [NEW])
    breakers.tell("fcm", succeeded=0, probe=True)
    assert breakers.ask("fcm", PROBE_S, [NEW]).passage is Passage.PROBE


def test_probe_of_a_dead_worker_is_made_again(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 16
    breakers.ask("fcm", PROBE_S, [NEW])
    time.now += PROBE_S
    assert breakers.ask("fcm", PROBE_S, [NEW]).passage is Passage.PROBE


def test_late_results_do_not_change_an_open_breaker(breakers: Breakers, time: Time) -> None:
    open_breaker(breakers)
    time.now += 14
    breakers.tell("fcm", succeeded=0, failed=people(50))
    breakers.tell("fcm", succeeded=50)
    assert breakers.ask("fcm", PROBE_S, [NEW]) == Permit(Passage.WAIT, 1)


def test_metrics_show_the_state_of_each_provider(breakers: Breakers, time: Time) -> None:
    breakers.tell("smtp", succeeded=5)
    open_breaker(breakers)
    [providers, _] = BreakerGauges(breakers).collect()
    assert {sample.labels["provider"]: sample.value for sample in providers.samples} == {"fcm": 2, "smtp": 0}


def test_metrics_count_receivers_of_webhooks_without_naming_them(breakers: Breakers) -> None:
    breakers.tell("ornek.org:443", succeeded=5)
    breakers.tell("2001:db8::1:443", succeeded=5)
    open_breaker(breakers, "gizli.ornek.org:443")
    families = list(BreakerGauges(breakers).collect())
    assert "ornek" not in str(families)
    counts = {sample.labels["state"]: sample.value for sample in families[1].samples}
    assert counts == {"closed": 2, "open": 1, "half_open": 0}


def test_probe_that_was_not_made_leaves_no_key(redis_url: str) -> None:
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    client.flushdb()
    own = RedisBreakers(client, RULES)
    own.tell("fcm", succeeded=0, probe=True)
    assert client.keys("*") == []
    client.close()


def test_gate_keeps_a_limited_number_of_receivers_of_webhooks(time: Time) -> None:
    gate = BreakerGate(MemoryBreakers(RULES, time), time)
    for number in range(MOST_KNOWN + 100):
        name = f"host-{number}:443"
        gate.tell(name, gate.ask(name, PROBE_S, [NEW]), succeeded=1, failed=[])
    assert len(gate._known) == MOST_KNOWN  # pyright: ignore[reportPrivateUsage]


def test_without_a_clock_the_time_of_redis_is_used(redis_url: str) -> None:
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    client.flushdb()
    own = RedisBreakers(client, RULES)
    open_breaker(own)
    permit = own.ask("fcm", PROBE_S, [NEW])
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
    asking: list[str]
    succeeded: int
    failed: list[str]
    probe: bool = False
    """Reports as a probe, whether or not it is one: probes may end after their time."""


RECIPIENTS = st.sampled_from([*people(6), NEW])
CALLS = st.builds(
    Call,
    st.sampled_from([0, 1, 5, 6, 7, 10, 15, 16]),
    st.lists(RECIPIENTS, min_size=1, max_size=3),
    st.integers(0, 5),
    st.lists(RECIPIENTS, max_size=5),
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
        permits = [one.ask("fcm", PROBE_S, call.asking) for one in both]
        assert permits[0] == permits[1]
        state = moved(state, both)
        for one in both:
            one.tell("fcm", succeeded=call.succeeded, failed=call.failed, probe=call.probe)
        state = moved(state, both)


def moved(before: BreakerState, both: Sequence[Breakers]) -> BreakerState:
    """The state of both now. It has to be one that may follow."""
    after, other = (state_of(one) for one in both)
    assert after is other
    check_transition(BREAKER_TRANSITIONS, before, after)
    return after
